"""One thread: two of them on a busy machine can be forty times slower, and their sums may differ in the last bits."""

import gc
import os
import signal
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import settings

from tests.browsers import open_browser

torch.set_num_threads(1)
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background, and so by child processes
settings.register_profile("suite", deadline=None, max_examples=15, derandomize=True)
settings.load_profile("suite")


@pytest.fixture(autouse=True)
def _no_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests must not depend on the width of somebody's terminal, nor start a process for each of his cores."""
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(os, "cpu_count", lambda: 1)


@pytest.fixture
def _undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """For what a page says besides its plots, which take most of its time. Forks of this process draw none either."""
    drawn = "spacenet.report.plots.plot.Plot.inline_svg"
    monkeypatch.setattr(drawn, lambda plot: f'<svg viewBox="0 0 9 9">{plot.name}</svg>')


@pytest.fixture(scope="session")
def _operators_once() -> Iterator[None]:
    """Let torch look through all operators of ONNX once, not with every export."""
    pytest.importorskip("onnxscript")
    registry = import_module("torch.onnx._internal.exporter._registration").ONNXRegistry
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "from_torchlib", staticmethod(cache(registry.from_torchlib)))
        yield


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with open_browser() as browser:
        yield browser


SLOW_FILES = (
    "tests/test_pages.py",
    "tests/experiments/test_engines.py",
    "tests/model/test_export.py",
    "tests/model/test_estimator.py",
    "tests/experiments/test_engines_launch.py",
    "tests/test_examples.py",
    "tests/test_site.py",
    "tests/test_page_commands.py",
    "tests/serve/test_connections.py",
    "tests/experiments/test_run.py",
)
"""Started first, so that no worker ends with one of them alone."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    first = {config.rootpath / name: number for number, name in enumerate(SLOW_FILES)}
    items.sort(key=lambda item: first.get(Path(item.path), len(first)))


def pytest_collection_finish() -> None:
    """What is imported stays: neither garbage collections nor forks need to touch it again."""
    gc.collect()
    gc.freeze()
