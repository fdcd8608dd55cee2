"""Comparisons are read as `spacenet compare` leaves them, or put together by hand."""

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from spacenet.errors import RunError
from spacenet.experiments.run import METRICS, create_folder
from spacenet.report.comparison_data import load_comparison
from tests.experiments.support import config
from tests.report.plots.made_up import metrics


def put(base: Path, name: str, method: str, seed: int, acc: float = 80.0, **over: Any) -> Path:
    """A finished run with these figures."""
    folder, changed = base / name, dataclasses.replace(config(base, method, seed), **over)
    create_folder(changed, folder)
    found = metrics([[acc]], method=method, seed=seed, stream=changed.stream, stopped=None)
    (folder / METRICS).write_text(json.dumps(found))
    return folder


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for method, accuracies in {"spacenet": [80, 90], "naive": [20, 30]}.items():
        for seed, acc in enumerate(accuracies):
            put(tmp_path, f"all/{method}/seed-{seed}", method, seed, acc)
    return tmp_path


def test_a_comparison_folder(place: Path) -> None:
    facts = load_comparison(place / "all")
    assert [(row.method, row.seeds, row.acc.mean) for row in facts.rows] == [("naive", 2, 25), ("spacenet", 2, 85)]
    assert list(facts.runs) == ["naive", "spacenet"]
    assert [run["acc"] for run in facts.runs["spacenet"]] == [80, 90]
    assert facts.seeds == [0, 1]
    assert facts.labels == [["0", "1"]]
    assert facts.left_out == []


def test_folders_by_hand(place: Path) -> None:
    run, seeds = place / "all" / "naive" / "seed-1", place / "all" / "spacenet"
    facts = load_comparison([run, seeds, run])
    assert [(row.method, row.seeds) for row in facts.rows] == [("naive", 1), ("spacenet", 2)]


def test_what_did_not_end_is_left_out_and_named(place: Path) -> None:
    (place / "all" / "naive" / "seed-1" / METRICS).unlink()
    stopped = place / "all" / "spacenet" / "seed-0" / METRICS
    stopped.write_text(json.dumps(json.loads(stopped.read_text()) | {"stopped": "task 3 was not learned: full"}))
    facts = load_comparison(place / "all")
    assert [(row.method, row.seeds) for row in facts.rows] == [("naive", 1), ("spacenet", 1)]
    assert facts.left_out == [
        "naive seed 1: the run is not finished",
        "spacenet seed 0: task 3 was not learned: full",
    ]
    for method in ("naive", "spacenet"):
        shutil.rmtree(place / "all" / method)
    put(place, "all/er", "er", 0)
    (place / "all" / "er" / METRICS).unlink()
    with pytest.raises(RunError, match="nothing to compare"):
        load_comparison(place / "all")


def test_another_stream_other_settings_or_the_same_seed_are_refused(place: Path) -> None:
    usual = config(place)
    cut = dataclasses.replace(usual.data, classes_per_task=3, tasks=None)
    with pytest.raises(RunError, match="not of one stream"):
        load_comparison([place / "all", put(place, "cut", "er", 0, data=cut)])
    longer = dataclasses.replace(usual.training, epochs=usual.training.epochs + 1)
    with pytest.raises(RunError, match="different settings"):
        load_comparison([place / "all", put(place, "longer", "naive", 7, training=longer)])
    with pytest.raises(RunError, match="same seed"):
        load_comparison([place / "all", put(place, "twice", "naive", 0)])


def test_a_folder_without_runs(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="holds no runs"):
        load_comparison(tmp_path)
    with pytest.raises(RunError, match="holds no runs"):
        load_comparison(tmp_path / "missing")
