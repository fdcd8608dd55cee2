from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from spacenet.experiments.batch import Outcome, execute_all

from spacenet.config.ranges import Choice, Uniform
from spacenet.errors import RunError, SettingsError
from spacenet.experiments.engines import EngineConfig
from spacenet.experiments.run import load_config
from spacenet.experiments.sweep import Search, Sweep
from spacenet.methods.naive import Naive

pytestmark = pytest.mark.filterwarnings("ignore")  # optuna says that parts of it may still change


@pytest.fixture(autouse=True)
def search_space(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = {"training.learning_rate": Uniform(0.01, 1.0, log=True), "net.hidden": Choice(([3], [5]))}
    chosen["training.batch_size"] = Uniform(4, 8, integer=True)
    monkeypatch.setattr(Naive, "ranges", chosen)


def search(folder: Path, kind: Search = "random", seeds: int = 1, seed: int = 0) -> Sweep:
    return Sweep(folder, {"data": {"validation": 0.2}}, "split-digits", "naive", kind, seed, seeds)


def scored(folders: Sequence[Path]) -> Iterator[Outcome]:
    """Stands in for runs: the larger the step, the better; each seed adds one."""
    for folder in folders:
        config = load_config(folder)
        yield Outcome(folder, {"acc": config.training.learning_rate + config.seed})


def test_values_lie_in_the_ranges_and_the_best_is_found(tmp_path: Path) -> None:
    sweep = search(tmp_path)
    trials = list(sweep.run(8, 3, scored))
    assert [trial.number for trial in trials] == list(range(8))
    assert len({trial.values["training.learning_rate"] for trial in trials}) == 8
    for trial in trials:
        config = sweep.config(trial.values)
        assert 0.01 <= config.training.learning_rate <= 1.0
        assert config.net.hidden in ((3,), (5,))
        assert config.training.batch_size in range(4, 9)
        assert config.data.validation == 0.2
    best = sweep.best()
    assert best is not None
    assert best.score == max(trial.score or 0 for trial in trials)


def test_random_search_does_not_depend_on_how_many_run_at_once(tmp_path: Path) -> None:
    found = [[t.values for t in search(tmp_path / str(n)).run(5, n, scored)] for n in (1, 4)]
    assert found[0] == found[1]
    others = [t.values for t in search(tmp_path / "other", seed=1).run(5, 1, scored)]
    assert found[0] != others


def test_it_goes_on_where_it_stopped_half_finished_trials_first(tmp_path: Path) -> None:
    whole = [t.values for t in search(tmp_path / "whole").run(5, 2, scored)]

    def interrupted(folders: Sequence[Path]) -> Iterator[Outcome]:
        yield from scored(folders[:1])
        raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            list(search(tmp_path / "cut").run(5, 2, interrupted))
    assert [t.score is None for t in search(tmp_path / "cut").trials()].count(True) == 1
    list(search(tmp_path / "cut").run(5, 2, scored))
    again = search(tmp_path / "cut").trials()
    assert [t.values for t in again] == whole
    assert all(t.score is not None for t in again)
    assert list(search(tmp_path / "cut").run(5, 2, scored)) == []


def test_the_score_is_the_mean_over_seeds_and_failures_have_none(tmp_path: Path) -> None:
    (trial,) = search(tmp_path / "two", seeds=2).run(1, 1, scored)
    assert trial.score == pytest.approx(trial.values["training.learning_rate"] + 0.5)

    def failing(folders: Sequence[Path]) -> Iterator[Outcome]:
        yield from (Outcome(folder, None, "diverged", 2) for folder in folders)

    sweep = search(tmp_path / "bad")
    assert [t.score for t in sweep.run(2, 1, failing)] == [None, None]
    assert sweep.best() is None


def test_tpe_searches_too(tmp_path: Path) -> None:
    assert len(list(search(tmp_path, "tpe").run(12, 1, scored))) == 12


def test_another_search_is_not_mixed_in(tmp_path: Path) -> None:
    search(tmp_path)
    with pytest.raises(RunError, match=r"holds another search \(search random\)"):
        search(tmp_path, "tpe")


def test_a_method_without_ranges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Naive, "ranges", {})
    with pytest.raises(SettingsError, match="naive declares no ranges"):
        search(tmp_path)


def test_real_runs_are_scored_on_held_out_data(tmp_path: Path) -> None:
    base: dict[str, Any] = {"data": {"validation": 0.3}, "training": {"epochs": 1}}
    sweep = Sweep(tmp_path, base, "split-digits", "naive", "random", 0)
    (trial,) = sweep.run(1, 1, lambda folders: execute_all(folders, EngineConfig(workers=1)))
    assert trial.score is not None
    assert 0 < trial.score < 100
