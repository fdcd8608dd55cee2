import json
from pathlib import Path

import pytest

from spacenet.config.engine import EngineConfig
from spacenet.config.presets import preset_config
from spacenet.errors import RunError
from spacenet.experiments.analysis import Analysis
from spacenet.experiments.comparison import (
    COMPARISON,
    SUMMARY,
    Failure,
    compare_outcomes,
    comparison_json,
    load_comparison,
    runs_in,
    save_summary,
    seed_folders,
)
from spacenet.experiments.jobs import Job, execute_all
from spacenet.experiments.run import METRICS, Run, RunData
from tests.experiments.support import config
from tests.experiments.test_run import Stop


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A comparison of three methods, one of which did not learn the whole stream."""
    place = tmp_path_factory.mktemp("kept")
    quick = {"epochs": 1}
    jobs = [
        Job(config(place, "naive", seed, training=quick), folder=place / "c/naive" / f"seed-{seed}") for seed in (0, 1)
    ]
    jobs.append(Job(config(place, training=quick), folder=place / "c/spacenet/seed-0"))
    full = config(place, "static-sparse", training=quick, net={"hidden": [30, 16]})
    jobs.append(Job(full, folder=place / "c/static-sparse/seed-0"))
    outcomes = execute_all(jobs, EngineConfig(workers=1))
    (place / "c" / COMPARISON).write_text(comparison_json(compare_outcomes(outcomes)))
    return place / "c"


def test_seeds_are_found_in_their_order(tmp_path: Path) -> None:
    for seed in (10, 2, 0):
        (tmp_path / f"seed-{seed}").mkdir()
        (tmp_path / f"seed-{seed}" / "config.toml").touch()
    (tmp_path / "seed-3").mkdir()
    assert [folder.name for folder in seed_folders(tmp_path)] == ["seed-0", "seed-2", "seed-10"]


def test_the_summary_has_mean_and_standard_deviation(tmp_path: Path) -> None:
    others = {"last_acc": 70.0, "aia": 80.0, "bwt": -1.0, "forgetting": 1.0, "task_il_acc": 99.0, "seconds": 1.0}
    figures = [{"acc": acc, **others} for acc in (70.0, 74.0)]
    common = {"stream": "s", "method": "m", "evaluated_on": "test set", "versions": {}}
    plain = preset_config("split-digits", "naive")
    runs = [RunData(plain.with_seed(seed), {**common, **f}, Analysis()) for seed, f in enumerate(figures)]
    save_summary(tmp_path, runs)
    summary = json.loads((tmp_path / SUMMARY).read_text())
    assert summary["seeds"] == [0, 1]
    assert summary["acc"]["mean"] == 72.0
    assert summary["acc"]["std"] == pytest.approx(2.8284, abs=1e-3)
    assert summary["task_il_acc"] == {"mean": 99.0, "std": 0.0}
    save_summary(tmp_path, runs[:1])
    assert json.loads((tmp_path / SUMMARY).read_text())["acc"] == {"mean": 70.0, "std": None}


def test_a_comparison_is_read_back(kept: Path) -> None:
    found = load_comparison(kept)
    assert [(row.method, row.seeds) for row in found.rows] == [("naive", 2), ("spacenet", 1)]
    assert found.labels == [["0", "1"], ["2", "3"], ["4", "5"]]
    assert len(found.failures) == 1
    assert str(found.failures[0]).startswith("static-sparse seed 0: hidden2 is full")
    noted = json.loads((kept / COMPARISON).read_text())
    assert [row["acc"]["mean"] for row in noted["rows"]] == [row.acc.mean for row in found.rows]
    assert noted["seeds"] == [0, 1]


def test_a_comparison_is_put_together_from_runs_and_folders_of_seeds(kept: Path) -> None:
    found = load_comparison([kept / "naive", kept / "spacenet" / "seed-0", kept / "naive" / "seed-1"])
    assert [(row.method, row.seeds) for row in found.rows] == [("naive", 2), ("spacenet", 1)]
    assert found.failures == ()
    assert [path.name for path in runs_in(kept / "naive")] == ["seed-0", "seed-1"]
    assert len(runs_in(kept)) == 4


def test_unfinished_runs_are_failures(kept: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        Run(config(tmp_path, "ewc"), folder=tmp_path / "ewc", callbacks=[Stop(10)]).execute()
    with pytest.raises(RunError, match="nothing to compare"):
        load_comparison(tmp_path / "ewc")
    found = load_comparison([kept / "naive", tmp_path / "ewc"])
    assert list(found.failures) == [Failure("ewc", 0, "the run is not finished")]


def test_folders_that_hold_no_runs_or_other_ones(kept: Path, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="holds no runs"):
        load_comparison(tmp_path)
    other = config(tmp_path, "ewc", stream={"tasks": "0,1/2,3"}, training={"epochs": 1})
    Run(other, folder=tmp_path / "other").execute()
    assert (tmp_path / "other" / METRICS).is_file()
    with pytest.raises(RunError, match="different streams or cuts"):
        load_comparison([kept, tmp_path / "other"])
