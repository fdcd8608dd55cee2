import json
from pathlib import Path

import pytest

from spacenet.errors import RunError
from spacenet.experiments.run import STATE
from spacenet.experiments.seeds import (
    create_folders,
    execute,
    execute_all,
    save_summary,
    seed_folders,
    usual_workers,
)
from tests.experiments.support import config, outcome


def test_results_do_not_depend_on_the_number_of_workers(tmp_path: Path) -> None:
    results = {}
    for workers in (1, 2):
        folders = create_folders(config(tmp_path), range(3), tmp_path / str(workers))
        outcomes = list(execute_all(folders, workers, list))
        assert sorted(o.metrics["seed"] for o in outcomes if o.metrics) == [0, 1, 2]
        results[workers] = [outcome(folder) for folder in folders]
    assert results[1] == results[2]


def test_finished_runs_are_not_repeated(tmp_path: Path) -> None:
    (folder,) = create_folders(config(tmp_path), [5], tmp_path / "runs")
    first = execute(folder)
    (folder / STATE).write_bytes(b"would be an error if it were read")
    assert execute(folder) == first


def test_a_failed_run_is_reported_and_the_others_go_on(tmp_path: Path) -> None:
    good, bad = create_folders(config(tmp_path), range(2), tmp_path / "runs")
    (bad / "config.toml").write_text((bad / "config.toml").read_text().replace("selected = [", "selected = [99,"))
    outcomes = {o.folder: o for o in execute_all([bad, good], 2, list)}
    assert outcomes[good].error is None
    assert outcomes[bad].metrics is None
    assert outcomes[bad].exit_code == 2
    assert "99" in str(outcomes[bad].error) or "numbers" in str(outcomes[bad].error)


def test_folders_are_not_used_twice(tmp_path: Path) -> None:
    create_folders(config(tmp_path), range(2), tmp_path / "runs")
    assert [folder.name for folder in seed_folders(tmp_path / "runs")] == ["seed-0", "seed-1"]
    with pytest.raises(RunError, match="holds runs already"):
        create_folders(config(tmp_path), range(2), tmp_path / "runs")


def test_the_summary_has_mean_and_standard_deviation(tmp_path: Path) -> None:
    figures = [{"acc": acc, "bwt": -1.0, "task_incremental": {"acc": 99.0}, "seconds": 1.0} for acc in (70.0, 74.0)]
    common = {"stream": "s", "method": "m", "evaluated_on": "test set", "versions": {}}
    save_summary(tmp_path, [{**common, **f, "seed": seed} for seed, f in enumerate(figures)])
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["seeds"] == [0, 1]
    assert summary["acc"]["mean"] == 72.0
    assert summary["acc"]["sd"] == pytest.approx(2.8284, abs=1e-3)


def test_workers_leave_each_run_its_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    training = {"threads": 2, "devices": 2, "device": "cpu"}
    (plain,) = create_folders(config(tmp_path, training={"device": "cpu"}), [0], tmp_path / "plain")
    (wide,) = create_folders(config(tmp_path, training=training), [0], tmp_path / "wide")
    assert usual_workers(plain) == 8
    assert usual_workers(wide) == 2
