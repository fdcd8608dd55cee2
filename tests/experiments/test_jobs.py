import dataclasses
import errno
import logging
import os
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spacenet.config.engine import EngineConfig
from spacenet.data.stream import Stream
from spacenet.errors import FileError, MissingExtraError, RunError, SettingsError, SpaceFull, SpacenetError
from spacenet.experiments.callbacks import Callback, RunStart
from spacenet.experiments.clusters import ClusterLost
from spacenet.experiments.jobs import (
    Job,
    Outcome,
    StopUnwanted,
    UnexpectedError,
    check_folder,
    default_workers,
    execute,
    execute_all,
    in_this_process,
)
from spacenet.experiments.run import CONFIG, LOG, METRICS, STATE, Run, RunData
from spacenet.methods.naive import Naive
from spacenet.registry import METHODS
from tests.experiments.support import config, in_memory, outcome, seed_jobs
from tests.support import clouds


def test_results_do_not_depend_on_the_number_of_workers(tmp_path: Path) -> None:
    results = {}
    for workers in (1, 2):
        jobs = seed_jobs(config(tmp_path), range(3), tmp_path / str(workers))
        outcomes = list(execute_all(jobs, EngineConfig(workers=workers)))
        assert sorted(o.data.metrics["seed"] for o in outcomes if o.data) == [0, 1, 2]
        results[workers] = [outcome(job.folder) for job in jobs if job.folder]
    assert results[1] == results[2]


def test_nor_on_whether_there_is_a_folder(tmp_path: Path) -> None:
    jobs = seed_jobs(config(tmp_path), range(2))
    apart = {o.job.label: in_memory(o.data) for o in execute_all(jobs, EngineConfig(workers=2)) if o.data}
    here = {o.job.label: in_memory(o.data) for o in execute_all(jobs, EngineConfig(workers=1)) if o.data}
    assert set(here) == {"spacenet seed 0", "spacenet seed 1"}
    assert apart == here
    assert [path.name for path in tmp_path.iterdir()] == ["clouds.npz"]


def test_a_stream_in_memory_goes_to_the_workers(tmp_path: Path) -> None:
    data = clouds()
    stream = Stream.from_arrays(data.x_train, data.y_train, data.x_test, data.y_test)
    named = config(tmp_path, stream={"classes_per_task": 2})
    plain = dataclasses.replace(named, stream=stream.config)
    jobs = [dataclasses.replace(job, stream=stream) for job in seed_jobs(plain, range(2))]
    matrices = [o.data.metrics["matrix"] for o in execute_all(jobs, EngineConfig(workers=2)) if o.data]
    assert sorted(matrices) == sorted(Run(named.with_seed(seed)).execute().metrics["matrix"] for seed in range(2))


def test_finished_runs_are_not_repeated(tmp_path: Path) -> None:
    (job,) = seed_jobs(config(tmp_path), range(5, 6), tmp_path / "runs")
    assert job.folder is not None
    first = execute(job)
    (job.folder / STATE).write_bytes(b"would be an error if it were read")
    again = execute(job)
    assert again.finished
    assert again.data is not None
    assert first.data is not None
    assert again.data.metrics == first.data.metrics


def test_a_failed_run_is_reported_and_the_others_go_on(tmp_path: Path) -> None:
    good, bad = seed_jobs(config(tmp_path), range(2), tmp_path / "runs")
    bad = dataclasses.replace(bad, config=config(tmp_path, "spacenet", 1, method={"selected": [99]}))
    outcomes = {o.job.label: o for o in execute_all([bad, good], EngineConfig(workers=2))}
    assert outcomes[good.label].finished
    failed = outcomes[bad.label]
    assert failed.data is None
    assert isinstance(failed.error, SettingsError)
    assert failed.error.exit_code == 2
    assert failed.error.setting == "selected"
    assert "99 units of hidden1" in str(failed.error)


def test_a_run_that_ran_out_of_space_has_data_and_an_error(tmp_path: Path) -> None:
    jobs = seed_jobs(config(tmp_path, net={"hidden": [30, 16]}), range(2))
    for workers in (1, 2):
        for each in execute_all(jobs, EngineConfig(workers=workers)):
            assert not each.finished
            assert isinstance(each.error, SpaceFull)
            assert each.data is not None
            assert each.data.metrics["tasks_learned"] == 2


def test_workers_leave_each_run_its_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    assert default_workers(config(tmp_path, training={"device": "cpu"})) == 8
    assert default_workers(config(tmp_path, training={"threads": 2, "devices": 2, "device": "cpu"})) == 2


def test_a_single_run_or_a_single_worker_stays_in_this_process(tmp_path: Path) -> None:
    jobs = seed_jobs(config(tmp_path), range(2))
    assert in_this_process(jobs, EngineConfig(workers=1))
    assert in_this_process(jobs[:1], EngineConfig(workers=2))
    assert not in_this_process(jobs, EngineConfig(workers=2))
    assert not in_this_process(jobs[:1], EngineConfig("dask", "tcp://there:1"))


def test_what_is_finished_in_its_folder_counts_though_the_cluster_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = seed_jobs(config(tmp_path, "naive", training={"epochs": 1}), range(3), tmp_path / "runs")
    first, second = execute(jobs[0]), execute(jobs[1])

    def lost(*arguments: object) -> Iterator[tuple[int, Outcome]]:
        yield 0, first  # the second one's outcome does not arrive
        raise ClusterLost("the scheduler at tcp://there is gone")

    monkeypatch.setattr("spacenet.experiments.jobs.run_parallel", lost)
    outcomes = list(execute_all(jobs, EngineConfig("dask", "tcp://there")))
    assert [o.job for o in outcomes] == jobs
    assert [o.finished for o in outcomes] == [True, True, False]
    assert outcomes[1].data is not None
    assert second.data is not None
    assert outcomes[1].data.metrics == second.data.metrics
    error = outcomes[2].error
    assert isinstance(error, ClusterLost)
    assert error.message == "the scheduler at tcp://there is gone; 2 of 3 runs are finished."
    assert error.for_cli().endswith("The same command continues.")


def test_a_run_that_is_not_wanted_any_more_ends_and_can_be_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, stopped = (seed_jobs(config(tmp_path), range(1), tmp_path / name)[0] for name in ("whole", "stopped"))
    asked = iter([True] * 30)
    monkeypatch.setattr("spacenet.experiments.jobs.still_wanted", lambda: next(asked, False))
    ended = execute(stopped, [StopUnwanted()])
    assert isinstance(ended.error, RunError)
    assert "what was saved is kept" in str(ended.error)
    assert execute(stopped).finished
    assert execute(whole).finished
    assert whole.folder is not None
    assert stopped.folder is not None
    assert outcome(stopped.folder) == outcome(whole.folder)


def faulty(run: Run) -> RunData:
    if run.config.model.seed == 0:
        raise ZeroDivisionError("of all things")
    return RunData(run.config, {"seed": 1}, run.analysis)


@pytest.mark.parametrize("kept", [True, False])
def test_a_fault_in_one_run_is_reported_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, kept: bool
) -> None:
    jobs = seed_jobs(config(tmp_path), range(2), tmp_path / "runs" if kept else None)
    (tmp_path / "runs" / "seed-0").mkdir(parents=True)
    monkeypatch.setattr(Run, "execute", faulty)
    with caplog.at_level(logging.ERROR, "spacenet"):
        bad, good = execute_all(jobs, EngineConfig(workers=1))
    assert good.data is not None
    assert good.data.metrics == {"seed": 1}
    assert isinstance(bad.error, UnexpectedError)
    assert bad.error.exit_code == 1
    assert "ZeroDivisionError: of all things" in str(bad.error)
    assert isinstance(bad.error.__cause__, ZeroDivisionError)
    assert "in faulty" in ((tmp_path / "runs" / "seed-0" / LOG).read_text() if kept else caplog.text)


@pytest.mark.parametrize(
    "error",
    [
        SettingsError("is wrong", setting="epochs", cli="Use --epochs.", python="Pass epochs."),
        MissingExtraError("to_frame needs pandas"),
        SpaceFull("hidden1 is full", "hidden1", python="Grow it."),
        RunError("no"),
        UnexpectedError("ZeroDivisionError"),
    ],
)
def test_errors_come_back_from_other_processes_as_they_were(error: SpacenetError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert (str(again), again.for_cli(), again.exit_code) == (str(error), error.for_cli(), error.exit_code)
    assert vars(again) == vars(error)


def test_a_folder_is_used_for_one_run_only(tmp_path: Path) -> None:
    (job,) = seed_jobs(config(tmp_path), range(1), tmp_path / "runs")
    assert job.folder is not None
    check_folder(job)
    execute(job)
    check_folder(job)
    moved = dataclasses.replace(job.config, stream=dataclasses.replace(job.config.stream, data_dir=tmp_path))
    check_folder(dataclasses.replace(job, config=moved))
    before = (job.folder / CONFIG).read_text()
    for over, names in (
        ({"training": {"epochs": 1}}, "training.epochs is 3 there, 1 here"),
        (
            {"method": {"rewire_fraction": 0.1}, "stream": {"validation": 0.1}},
            r"method.rewire_fraction is 0.\d there, 0.1 here; stream.validation is 0.0 there, 0.1 here",
        ),
        ({"net": {"hidden": [31, 30]}}, "net.hidden"),
    ):
        with pytest.raises(RunError, match=f"other settings: {names}"):
            check_folder(dataclasses.replace(job, config=config(tmp_path, **over)))
    with pytest.raises(RunError, match="other settings: method.name is 'spacenet' there, 'ewc' here;.* more"):
        check_folder(dataclasses.replace(job, config=config(tmp_path, "ewc")))
    assert (job.folder / CONFIG).read_text() == before


def test_a_folder_of_another_cut_of_the_users_data_is_not_used(tmp_path: Path) -> None:
    data = clouds()
    two, three = (Stream.from_arrays(data.x_train, data.y_train, classes_per_task=count) for count in (2, 3))
    wanted = dataclasses.replace(config(tmp_path, "naive", training={"epochs": 1}), stream=two.config)
    job = Job(wanted, two, tmp_path / "run")
    execute(job)
    check_folder(job)
    with pytest.raises(RunError, match="other tasks"):
        check_folder(dataclasses.replace(job, stream=three))


class Own(Naive):
    """A method of a notebook: no other process knows it."""

    name = "own-of-a-notebook"


def test_registered_methods_are_known_to_the_workers(tmp_path: Path) -> None:
    METHODS.register(Own.name, Own)
    try:
        outcomes = list(execute_all(seed_jobs(config(tmp_path, Own.name), range(2)), EngineConfig(workers=2)))
    finally:
        METHODS.unregister(Own.name)
    assert [o.error for o in outcomes] == [None, None]
    assert {o.data.config.model.method for o in outcomes if o.data} == {Own.name}


class Note(Callback):
    def __init__(self) -> None:
        self.labels: list[str] = []

    def on_run_begin(self, start: RunStart) -> None:
        self.labels.append(f"{start.config.model.method} {start.config.model.seed} {len(start.stream)}")


def test_callbacks_follow_the_jobs_of_this_process(tmp_path: Path) -> None:
    note = Note()
    list(execute_all(seed_jobs(config(tmp_path), range(2)), EngineConfig(workers=1), lambda job: [note]))
    assert note.labels == ["spacenet 0 3", "spacenet 1 3"]


def test_there_may_be_nothing_to_do() -> None:
    assert list(execute_all([], EngineConfig())) == []


def test_a_finished_run_leaves_no_checkpoint_behind(tmp_path: Path) -> None:
    """Where a run is killed between its last two moves, both its metrics and its checkpoint are there."""
    job = Job(config(tmp_path), folder=tmp_path / "run")
    assert execute(job).finished
    (tmp_path / "run" / "state.safetensors").write_bytes(b"left")
    assert execute(job).finished
    assert not (tmp_path / "run" / "state.safetensors").exists()


def test_a_finished_run_that_cannot_be_read_does_not_end_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Job(config(tmp_path, "naive"), folder=tmp_path / "run")
    assert execute(job).finished
    plain = Path.read_text

    def refused(path: Path, *args: Any, **options: Any) -> str:
        if path.name == METRICS:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return plain(path, *args, **options)

    monkeypatch.setattr(Path, "read_text", refused)
    error = execute(job).error
    assert isinstance(error, FileError)
    assert "metrics.json cannot be read (Permission denied)" in error.message
