from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from spacenet.config.engine import EngineConfig
from spacenet.config.ranges import Choice, Uniform
from spacenet.errors import DataError, FileError, RunError, SettingsError, SpacenetError, UnreadableModelError
from spacenet.experiments.analysis import Analysis
from spacenet.experiments.clusters import ClusterLost
from spacenet.experiments.jobs import Job, Outcome, execute_all
from spacenet.experiments.run import RunData, load_run
from spacenet.experiments.sweep import JOURNAL, Search, Sweep
from spacenet.methods.naive import Naive

pytestmark = pytest.mark.filterwarnings("ignore")  # optuna says that parts of it may still change


@pytest.fixture(autouse=True)
def search_space(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = {"training.learning_rate": Uniform(0.01, 1.0, log=True), "net.hidden": Choice(([3], [5]))}
    chosen["training.batch_size"] = Uniform(4, 8, integer=True)
    monkeypatch.setattr(Naive, "search_space", chosen)


def search(folder: Path | None, kind: Search = "random", seeds: int = 1, seed: int = 0, **over: Any) -> Sweep:
    base: dict[str, Any] = {"stream": {"validation": 0.2}, **over}
    return Sweep("split-digits", "naive", base, kind, seed, seeds, folder=folder)


def scored(jobs: Sequence[Job]) -> Iterator[Outcome]:
    """Stands in for runs: the larger the step, the better; each seed adds one."""
    for job in jobs:
        model = job.config.model
        yield Outcome(job, RunData(job.config, {"acc": model.training.initial_rate + model.seed}, Analysis()))


@pytest.mark.parametrize("kept", [True, False])
def test_values_lie_in_the_ranges_and_the_best_is_found(tmp_path: Path, kept: bool) -> None:
    sweep = search(tmp_path / "search" if kept else None)
    trials = list(sweep.run(8, 3, scored))
    assert [trial.number for trial in trials] == list(range(8))
    assert len({trial.values["training.learning_rate"] for trial in trials}) == 8
    for trial in trials:
        config = sweep.config(trial.values)
        assert 0.01 <= config.model.training.initial_rate <= 1.0
        assert config.model.net.hidden in ((3,), (5,))
        assert config.model.training.batch_size in range(4, 9)
        assert config.stream.validation == 0.2
    best = sweep.trials()[0]
    assert best.score == max(trial.score or 0 for trial in trials)
    assert sweep.config(best.values, stream={"validation": 0.0}).stream.validation == 0.0
    assert [path.name for path in tmp_path.iterdir()] == (["search"] if kept else [])


def test_fixed_settings_are_not_searched() -> None:
    base: dict[str, Any] = {"stream": {"validation": 0.2}, "training": {"batch_size": 16}}
    sweep = Sweep("split-digits", "naive", base, fixed=["training.batch_size", "stream.validation"])
    for trial in sweep.run(3, 1, scored):
        assert set(trial.values) == {"training.learning_rate", "net.hidden"}
        assert sweep.config(trial.values).model.training.batch_size == 16


def test_a_search_with_nothing_left_to_search_is_refused() -> None:
    with pytest.raises(SettingsError, match="nothing is left to search"):
        Sweep("split-digits", "naive", {}, fixed=list(Naive.search_space))


def test_random_search_does_not_depend_on_how_many_run_at_once(tmp_path: Path) -> None:
    found = [[t.values for t in search(tmp_path / str(n)).run(5, n, scored)] for n in (1, 4)]
    assert found[0] == found[1]
    others = [t.values for t in search(tmp_path / "other", seed=1).run(5, 1, scored)]
    assert found[0] != others


def test_it_goes_on_where_it_stopped_half_finished_trials_first(tmp_path: Path) -> None:
    whole = [t.values for t in search(tmp_path / "whole").run(5, 2, scored)]

    def interrupted(jobs: Sequence[Job]) -> Iterator[Outcome]:
        yield from scored(jobs[:1])
        raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            list(search(tmp_path / "cut").run(5, 2, interrupted))
    assert [t.score is None for t in search(tmp_path / "cut").trials()].count(True) == 1
    list(search(tmp_path / "cut").run(5, 2, scored))
    again = sorted(search(tmp_path / "cut").trials(), key=lambda trial: trial.number)
    assert [t.values for t in again] == whole
    assert all(t.score is not None for t in again)
    assert list(search(tmp_path / "cut").run(5, 2, scored)) == []


def test_the_score_is_the_mean_over_seeds_and_failures_have_none(tmp_path: Path) -> None:
    (trial,) = search(tmp_path / "two", seeds=2).run(1, 1, scored)
    assert trial.score == pytest.approx(trial.values["training.learning_rate"] + 0.5)

    def failing(jobs: Sequence[Job]) -> Iterator[Outcome]:
        yield from (Outcome(job, error=RunError("diverged")) for job in jobs)

    sweep = search(tmp_path / "bad")
    assert [t.score for t in sweep.run(2, 1, failing)] == [None, None]
    assert [t.score for t in sweep.trials()] == [None, None]


def test_tpe_searches_too(tmp_path: Path) -> None:
    assert len(list(search(tmp_path, "tpe").run(12, 1, scored))) == 12


def test_another_search_is_not_mixed_in(tmp_path: Path) -> None:
    search(tmp_path)
    with pytest.raises(RunError, match="holds another search: search is 'random' there, 'tpe' here"):
        search(tmp_path, "tpe")
    with pytest.raises(RunError, match="holds another search: seeds is 1 there, 2 here"):
        search(tmp_path, seeds=2)
    with pytest.raises(RunError, match=r"holds another search: stream.tasks is .*; training.epochs is"):
        search(tmp_path, training={"epochs": 3}, stream={"validation": 0.2, "tasks": "0,1/2,3"})
    search(tmp_path, stream={"validation": 0.2, "data_dir": "elsewhere"})
    search(tmp_path)


def test_a_method_without_a_search_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Naive, "search_space", {})
    with pytest.raises(SettingsError, match="naive declares no search space"):
        search(tmp_path)


def test_real_runs_are_scored_on_held_out_data(tmp_path: Path) -> None:
    base: dict[str, Any] = {"stream": {"validation": 0.3}, "training": {"epochs": 1}}
    sweep = Sweep("split-digits", "naive", base, folder=tmp_path)
    (trial,) = sweep.run(1, 1, lambda jobs: execute_all(jobs, EngineConfig(workers=1)))
    assert load_run(tmp_path / "trial-0" / "seed-0").metrics["evaluated_on"] == "held-out training data"
    assert trial.score is not None
    assert 0 < trial.score < 100


def test_settings_that_cannot_work_fail_and_the_search_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Naive, "search_space", {"training.epochs": Choice((0, 1))})
    trials = list(search(tmp_path).run(6, 2, scored))
    assert {trial.values["training.epochs"] for trial in trials if trial.score is None} == {0}
    assert {trial.values["training.epochs"] for trial in trials if trial.score is not None} == {1}


def test_a_lost_cluster_ends_the_search_and_its_trials_are_continued(tmp_path: Path) -> None:
    def lost(jobs: Sequence[Job]) -> Iterator[Outcome]:
        yield from scored(jobs[:1])
        yield from (Outcome(job, error=ClusterLost("the scheduler is gone")) for job in jobs[1:])

    with pytest.raises(ClusterLost):
        list(search(tmp_path / "lost").run(5, 3, lost))
    again = search(tmp_path / "lost")
    assert [trial.score is None for trial in again.trials()] == [False, True, True]
    assert [trial.number for trial in again.run(5, 3, scored)] == [1, 2, 3, 4]
    whole = search(tmp_path / "whole")
    list(whole.run(5, 3, scored))
    assert again.trials() == whole.trials()


@pytest.mark.parametrize("error", [FileError("no space left"), DataError("no such file"), UnreadableModelError("no")])
def test_what_is_no_fault_of_the_settings_ends_the_search_and_trials_are_continued(
    tmp_path: Path, error: SpacenetError
) -> None:
    def failing(jobs: Sequence[Job]) -> Iterator[Outcome]:
        yield from (Outcome(job, error=error) for job in jobs)

    with pytest.raises(type(error)):
        list(search(tmp_path / "cut").run(3, 2, failing))
    again, whole = search(tmp_path / "cut"), search(tmp_path / "whole")
    for each in (again, whole):
        list(each.run(3, 2, scored))
    assert again.trials() == whole.trials()


def test_wherever_a_journal_is_cut_off_the_search_ends_with_the_same_trials(tmp_path: Path) -> None:
    whole = search(tmp_path / "whole")
    list(whole.run(2, 1, scored))
    content = (tmp_path / "whole" / JOURNAL).read_bytes()
    ends = [place + 1 for place, byte in enumerate(content) if byte == ord("\n")]
    for number, cut in enumerate([*ends, *(end - 7 for end in ends)]):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / JOURNAL).write_bytes(content[:cut])
        again = search(folder)
        list(again.run(2, 1, scored))
        assert again.trials() == whole.trials()
