import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import methods
from spacenet.registry import METHODS


def metrics(method: str, seed: int, acc: float) -> dict[str, Any]:
    plain = {"parameters": 7, "extra_bytes": 0, "images_kept": 0, "units_added": 0, "stopped": None, "bwt": -10.0}
    plain |= {"last_acc": acc, "aia": 60.0, "forgetting": 10.0, "bytes_kept": 28}
    facts = {"stream": "split-mnist", "evaluated_on": "test set", "method": method, "seed": seed, "seconds": 2.0}
    return {**facts, "acc": acc, "task_il_acc": 90.0, **plain}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "paper.toml").write_text(
        "[split-mnist]\newc = { acc = [20.0, 0.1], bwt = [-99.0] }\nspacenet = { acc = [75.5] }\n"
        "[split-fashion-mnist]\n"
    )
    monkeypatch.setattr(methods, "HERE", tmp_path)
    monkeypatch.setattr(methods, "PAGE", tmp_path / "methods.md")
    return tmp_path


def test_the_page_says_what_was_reached_and_whether_that_is_the_papers(here: Path, tmp_path: Path) -> None:
    for method, scores in (("naive", [20.0]), ("ewc", [18.0, 19.0]), ("spacenet", [70.0, 72.0])):
        for seed, acc in enumerate(scores):
            folder = tmp_path / "runs" / method / f"seed-{seed}"
            folder.mkdir(parents=True)
            (folder / "config.toml").write_text(f'seed = {seed}\n[method]\nname = "{method}"\n')
            (folder / "metrics.json").write_text(json.dumps(metrics(method, seed, acc)))
    methods.keep("split-mnist", tmp_path / "runs")
    assert methods.main(["page"]) == 0
    page = (here / "methods.md").read_text()
    assert "| ewc | Regularization | 18.50 ± 0.71 |" in page
    assert (
        "| 18.50 ± 0.71 | -10.00 ± 0.00 | 20.00 ± 0.10 | -99.00 | ACC 1.5 below (not significant), BWT 89.0 above |"
        in page
    )
    assert "| ACC 4.5 below (not significant) |" in page
    assert "Welch's two-sided t-test" in page
    assert "no figure in the paper" in page
    assert "not run yet" in page
    assert all(f"## `{name}`" in page for name in METHODS)
    assert json.loads((here / "methods-split-mnist.json").read_text())["acc"]["spacenet"] == [70.0, 72.0]


def test_methods_that_are_measured_later_join_the_others(here: Path, tmp_path: Path) -> None:
    for place, method, seconds in (
        ("old", "naive", 2.0),
        ("old", "ewc", 3.0),
        ("new", "naive", 4.0),
        ("new", "ncm", 2.0),
    ):
        folder = tmp_path / place / method / "seed-0"
        folder.mkdir(parents=True)
        (folder / "config.toml").write_text(f'seed = 0\n[method]\nname = "{method}"\n')
        (folder / "metrics.json").write_text(json.dumps(metrics(method, 0, 50.0) | {"seconds": seconds}))
    for place in ("old", "new"):
        assert methods.main(["keep", "split-mnist", str(tmp_path / place)]) == 0
    facts = json.loads((here / "methods-split-mnist.json").read_text())
    assert {row["method"]: row["relative_time"] for row in facts["rows"]} == {"naive": 1.0, "ewc": 1.5, "ncm": 0.5}
    assert [each["methods"] for each in facts["measured"]] == [["naive", "ewc"], ["ncm"]]
    assert facts["rows"][0]["seconds"] == 2.0
    assert set(facts["acc"]) == {"naive", "ewc", "ncm"}


@pytest.mark.usefixtures("here")
def test_bad_commands_are_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert methods.main(["run", "no-stream"]) == 2
    assert "python -m benchmarks.methods page" in capsys.readouterr().err
