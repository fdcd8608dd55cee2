"""Pages of made-up runs."""

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from spacenet.experiments.comparison import ComparisonData, Failure
from spacenet.report.page.build import comparison_page, run_page
from spacenet.report.page.evaluation import evaluation_page
from spacenet.report.page.page import Page
from tests.report.made_up import comparison_data, complete_run, density_run, evaluation, metrics

HOSTILE = (
    "<script>alert(1)</script>",
    "$x_{$",
    "\"&amp;'",
    "a label that is much longer than any plot has room for",
    "]]>",
    "z",
)
"""Names of classes that would do harm if they were taken for anything but text."""
METHODS = ("naive", "er", "packnet", "spacenet", "joint")


@pytest.fixture(scope="session")
def comparison() -> ComparisonData:
    found = []
    for number, method in enumerate(METHODS):
        last = [20.0 * number, 98.0, 60.0 + 8 * number]
        for seed in (0, 1):
            matrix = [[90.0] * 3, [90.0] * 3, [value - 2 * seed if value else 0.0 for value in last]]
            costs: dict[str, Any] = {"bytes_kept": 1000 + 700 * number, "seconds": 2.0 + number}
            costs["images_kept"] = 50 * (method == "er")
            found.append(metrics(matrix, method=method, seed=seed, **costs))
    return comparison_data(*found, failures=(Failure("ewc", 5, "diverged"),))


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory, comparison: ComparisonData) -> dict[str, Page]:
    """A page of each kind."""
    tmp_path = tmp_path_factory.mktemp("pages")
    hostile = complete_run(tmp_path / "<i>run", stopped="<b>full")
    for task, labels in zip(hostile.metrics["tasks"], (HOSTILE[:2], HOSTILE[2:4], HOSTILE[4:]), strict=True):
        task["labels"] = list(labels)
    beside = complete_run(tmp_path / "static", "static-sparse")
    return {
        "run": run_page([complete_run(tmp_path / "run")], beside),
        "density": run_page([density_run()]),
        "hostile": run_page([hostile]),
        "comparison": comparison_page(comparison),
        "evaluation": evaluation_page(evaluation(), "model.safetensors", "<i>data"),
    }


@pytest.fixture(scope="session")
def html(pages: dict[str, Page]) -> Callable[[str], str]:
    """The text of a page of each kind, drawn once."""
    return cache(lambda name: pages[name].to_html())
