"""What results show, and that they survive a pickle."""

import pickle
from pathlib import Path
from typing import Any

import pytest

import spacenet
from spacenet.api import Comparison, RunResult, SeedResults, SweepResult
from spacenet.api.progress import JobsView, follow_jobs
from spacenet.config.presets import preset_config
from spacenet.errors import RunError
from spacenet.experiments.analysis import Analysis
from spacenet.experiments.jobs import Job, Outcome
from tests.api.support import QUICK, SPACE, bits, cloud_stream


@pytest.fixture(scope="module")
def run() -> RunResult:
    result: RunResult = spacenet.run(cloud_stream(), **QUICK, **SPACE)
    return result


@pytest.fixture(scope="module")
def seeds() -> SeedResults:
    return spacenet.run(cloud_stream(), "naive", seeds=2, workers=1, **QUICK)


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    config = {"methods": {"spacenet": {"method": {"selected": [999]}}}}
    return spacenet.compare(cloud_stream(), ["naive", "joint", "spacenet"], config=config, workers=1, **QUICK)


@pytest.fixture(scope="module")
def search() -> SweepResult:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # optuna says that parts of it may still change
        return spacenet.sweep(cloud_stream(), "naive", trials=2, workers=1, **QUICK)


@pytest.mark.usefixtures("_undrawn")
def test_a_run_shows_itself(run: RunResult, place: Path) -> None:
    assert f"{run.acc:.2f} %" in repr(run)
    assert run._repr_html_().count("<table") == len(run.tables()) == 3
    assert r"\toprule" in run.to_latex()
    assert run.to_markdown().count("\n| ") >= 3
    frame = run.to_frame()
    assert list(frame.columns) == ["0, 1", "2, 3", "4, 5"]
    assert list(frame.index) == [1, 2, 3]
    assert frame.to_numpy().tolist() == run.matrix.tolist()
    page = run.report(place / "page.html")
    assert "<html" in page.read_text(encoding="utf-8")


@pytest.mark.usefixtures("_undrawn")
def test_a_page_shows_the_inputs_of_two_runs_beside_each_other(place: Path) -> None:
    quick: dict[str, Any] = {"epochs": 1, "tasks": "0,1/2,3", "progress": False}
    run, other = (spacenet.run("split-digits", method, **quick) for method in ("spacenet", "static-sparse"))
    alone, both = run.report(place / "one.html"), run.report(place / "two.html", beside=other)
    assert "static-sparse" not in alone.read_text(encoding="utf-8")
    assert "static-sparse" in both.read_text(encoding="utf-8")


def test_figures_of_a_run(run: RunResult) -> None:
    for name in ("acc", "bwt", "forgetting", "fwt", "task_il_acc"):
        assert getattr(run, name) == run.metrics[name]
    empty = RunResult(preset_config("split-digits", "naive"), {"tasks_learned": 0}, Analysis())
    with pytest.raises(RunError, match="no task was learned"):
        empty.acc  # noqa: B018
    assert (empty.matrix.size, repr(empty)) == (0, "")


def test_seeds_show_themselves(seeds: SeedResults, place: Path) -> None:
    assert len(seeds) == 2
    assert f"{seeds.acc.mean:.2f}" in repr(seeds)
    assert "<table" in seeds._repr_html_()
    assert r"\toprule" in seeds.to_latex()
    assert seeds.to_frame()["acc"].tolist() == [run.acc for run in seeds]
    assert seeds.report(place / "page.html").is_file()


def test_a_comparison_shows_itself(comparison: Comparison, place: Path) -> None:
    assert "naive" in repr(comparison)
    assert "joint" in comparison._repr_html_()
    assert r"\toprule" in comparison.to_latex()
    frame = comparison.to_frame()
    assert list(frame.index) == ["naive", "joint"]
    assert frame.loc["joint", "acc"] == comparison.rows[1].acc.mean
    assert comparison.to_csv().splitlines()[0].startswith("strategy,method,seeds,acc,acc_std")
    assert '"failures"' in comparison.to_json()
    assert "999 units" in comparison.report(place / "page.html").read_text(encoding="utf-8")


def test_a_search_shows_itself(search: SweepResult) -> None:
    assert "learning_rate" in repr(search)
    assert "<table" in search._repr_html_()
    assert search.to_frame()["acc"].tolist() == [trial.score for trial in search.trials]


def test_results_survive_a_pickle(
    run: RunResult, seeds: SeedResults, comparison: Comparison, search: SweepResult
) -> None:
    results: list[Any] = [run, seeds, comparison, search]
    for result in results:
        again = pickle.loads(pickle.dumps(result))
        assert type(again) is type(result)
        assert repr(again) == repr(result)
    assert bits(pickle.loads(pickle.dumps(run))) == bits(run)


@pytest.mark.parametrize("done", [0, 1])
def test_the_view_of_several_runs_reads_their_logs(place: Path, done: int) -> None:
    plain = preset_config("split-digits", "naive")
    jobs = [Job(plain.with_seed(n), folder=place / f"seed-{n}") for n in range(3)]
    for job, line in zip(jobs, ["task 2/5  epoch 1/4", "done: ACC 75.00"], strict=False):
        assert job.folder is not None
        job.folder.mkdir()
        (job.folder / "run.log").write_text(f"2026-01-01 10:00:00  first\n2026-01-01 10:00:01  {line}\n")
    view = JobsView([*jobs, Job(plain.with_seed(9))])
    view.done = done
    assert view.__rich__().plain == f"{done} of 4 runs done\n  naive seed 0  task 2/5  epoch 1/4"


def test_outcomes_are_followed_with_a_line_each(caplog: pytest.LogCaptureFixture, seeds: SeedResults) -> None:
    jobs = [Job(run.config) for run in seeds]
    outcomes = [Outcome(jobs[0], seeds[0]), Outcome(jobs[1], error=RunError("diverged"))]
    with caplog.at_level("INFO", "spacenet"):
        assert list(follow_jobs(iter(outcomes), jobs)) == outcomes
    assert caplog.messages[0].startswith(f"naive seed 0 finished: ACC {seeds[0].acc:.2f}, BWT ")
    assert caplog.messages[1] == "naive seed 1 failed: diverged"
