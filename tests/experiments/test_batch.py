from pathlib import Path

import pytest
from spacenet.experiments.batch import execute, execute_all, usual_workers
from spacenet.experiments.seeds import create_folders

from spacenet.experiments.engines import EngineConfig
from spacenet.experiments.run import STATE, Run
from tests.experiments.support import config, outcome


def test_results_do_not_depend_on_the_number_of_workers(tmp_path: Path) -> None:
    results = {}
    for workers in (1, 2):
        folders = create_folders(config(tmp_path), range(3), tmp_path / str(workers))
        outcomes = list(execute_all(folders, EngineConfig(workers=workers)))
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
    outcomes = {o.folder: o for o in execute_all([bad, good], EngineConfig(workers=2))}
    assert outcomes[good].error is None
    assert outcomes[bad].metrics is None
    assert outcomes[bad].exit_code == 2
    assert "99" in str(outcomes[bad].error) or "numbers" in str(outcomes[bad].error)


def test_workers_leave_each_run_its_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    training = {"threads": 2, "devices": 2, "device": "cpu"}
    (plain,) = create_folders(config(tmp_path, training={"device": "cpu"}), [0], tmp_path / "plain")
    (wide,) = create_folders(config(tmp_path, training=training), [0], tmp_path / "wide")
    assert usual_workers(plain) == 8
    assert usual_workers(wide) == 2


def test_a_fault_in_one_run_is_reported_and_the_others_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = create_folders(config(tmp_path), range(2), tmp_path / "runs")

    def faulty(run: Run) -> dict[str, object]:
        if run.config.seed == 0:
            raise ZeroDivisionError("of all things")
        return {"seed": run.config.seed}

    monkeypatch.setattr(Run, "execute", faulty)
    bad, good = execute_all(folders, EngineConfig(workers=1))
    assert good.metrics == {"seed": 1}
    assert bad.exit_code == 1
    assert "ZeroDivisionError: of all things" in str(bad.error)
    assert "in faulty" in (folders[0] / "run.log").read_text()
