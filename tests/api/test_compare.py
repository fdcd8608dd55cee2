"""`spacenet.compare` and `spacenet.sweep`."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spacenet
from spacenet.api import BEST, Comparison, SweepResult, Trial
from spacenet.config.presets import resolve_automatic
from spacenet.config.run import read_toml
from spacenet.errors import RunError, SettingsError
from spacenet.methods import Method
from spacenet.methods.naive import Naive
from tests.api.support import QUICK, bits, cloud_stream

optuna_warns = pytest.mark.filterwarnings("ignore")  # optuna says that parts of it may still change


def own_method() -> type[Method]:
    class Own(Naive):
        """Fine-tuning of mine."""

        name = "my-method"

    return Own


def test_methods_side_by_side_in_memory(place: Path) -> None:
    table = spacenet.compare(cloud_stream(), ["joint", "naive", own_method()], seeds=2, seed=1, workers=2, **QUICK)
    assert isinstance(table, Comparison)
    assert [(row.method, row.seeds) for row in table.rows] == [("joint", 2), ("naive", 2), ("my-method", 2)]
    assert [run.seed for run in table.runs["naive"]] == [1, 2]
    for each in table.runs["naive"]:
        assert bits(each) == bits(spacenet.run(cloud_stream(), "naive", seed=each.seed, **QUICK))
    assert table.failures == ()
    assert list(place.iterdir()) == []


def test_a_comparison_in_a_folder_goes_on(place: Path) -> None:
    first = spacenet.compare(cloud_stream(), "naive", out="kept", workers=1, **QUICK)
    times = {path: path.stat().st_mtime_ns for path in place.rglob("metrics.json")}
    both = spacenet.compare(cloud_stream(), "naive, ewc", out="kept", seeds=2, workers=1, **QUICK)
    assert {path: path.stat().st_mtime_ns for path in times} == times
    assert bits(both.runs["naive"][0]) == bits(first.runs["naive"][0])
    assert [(row.method, row.seeds) for row in both.rows] == [("naive", 2), ("ewc", 2)]
    assert json.loads((place / "kept" / "comparison.json").read_text())["stream"] == "custom"
    assert (place / "kept" / "comparison.csv").read_text() == both.to_csv()
    assert (place / "kept" / "comparison.md").read_text() == both.to_markdown()
    assert (place / "kept" / "comparison.tex").read_text() == both.to_latex()
    with pytest.raises(RunError, match="other settings: training.epochs is 2 there, 3 here"):
        spacenet.compare(cloud_stream(), "naive", out="kept", **{**QUICK, "epochs": 3})


def test_a_method_that_cannot_take_part_is_a_failure_and_the_others_go_on() -> None:
    config = {"methods": {"spacenet": {"method": {"selected": [999]}}}}
    table = spacenet.compare(cloud_stream(), ["naive", "spacenet"], config=config, workers=1, **QUICK)
    assert [row.method for row in table.rows] == ["naive"]
    (failure,) = table.failures
    assert (failure.method, failure.seed) == ("spacenet", 0)
    assert "999 units" in failure.reason


def test_settings_and_a_net_are_for_all_methods() -> None:
    table = spacenet.compare("split-digits", ["naive", "ewc"], epochs=1, tasks="0,1/2,3", net="mlp", progress=False)
    assert {run[0].config.model.training.epochs for run in table.runs.values()} == {1}
    assert {run[0].config.stream.tasks for run in table.runs.values()} == {"0,1/2,3"}


def test_a_stream_with_a_large_first_task_is_compared_over_all_samples() -> None:
    cut: dict[str, Any] = {"first_classes": 4, "shuffle_classes": 1993}
    table = spacenet.compare("split-digits", ["naive", "spacenet"], epochs=2, workers=1, progress=False, **cut)
    run = table.runs["spacenet"][0]
    assert [len(labels) for labels in run.labels] == [4, 2, 2, 2]
    tested = np.array([task["test_samples"] for task in run.metrics["tasks"]])
    assert tested.sum() == 355
    over_samples = [row[: n + 1] @ tested[: n + 1] / tested[: n + 1].sum() for n, row in enumerate(run.matrix)]
    assert run.last_acc == pytest.approx(over_samples[-1])
    assert run.aia == pytest.approx(np.mean(over_samples))
    assert abs(run.last_acc - run.acc) > 0.1
    assert json.loads(table.to_json())["rows"][1]["last_acc"]["mean"] == run.last_acc
    assert table.to_frame().loc["spacenet", "last_acc"] == run.last_acc
    latex = table.to_latex()
    assert all(word in latex for word in ("last accuracy", "AIA", "forgetting"))


@pytest.mark.parametrize("methods", [["naive", "ewc", "lwf"], ["ewc", "lwf", "naive"]])
def test_a_setting_is_for_the_methods_that_have_it(methods: list[str]) -> None:
    table = spacenet.compare(cloud_stream(), methods, strength=3.0, workers=1, **QUICK)
    found = {name: vars(runs[0].config.model.method_settings).get("strength") for name, runs in table.runs.items()}
    assert found == {"naive": None, "ewc": 3.0, "lwf": 3.0}
    owners = "spacenet-rehearsal, spacenet, spacenet-density, spacenet-experts"
    message = f"'rewire_fraction' is a setting of {owners}, not of naive, ewc"
    with pytest.raises(SettingsError, match=message):
        spacenet.compare(cloud_stream(), ["naive", "ewc"], rewire_fraction=0.3)
    with pytest.raises(SettingsError, match="unknown setting of naive, ewc 'strengh', did you mean 'strength'"):
        spacenet.compare(cloud_stream(), ["naive", "ewc"], strengh=0.3)


def test_settings_of_one_method_by_their_names() -> None:
    own = {"ewc": {"strength": 5, "epochs": 1}}
    table = spacenet.compare(cloud_stream(), ["naive", "ewc"], method_settings=own, workers=1, **QUICK)
    naive, ewc = (table.runs[name][0].config.model for name in ("naive", "ewc"))
    assert (naive.training.epochs, ewc.training.epochs) == (2, 1)
    assert vars(ewc.method_settings)["strength"] == 5.0
    row = table.rows[1]
    assert row.aia is not None
    assert (row.acc.std, row.aia.std) == (None, None)
    assert row.aia.mean == table.runs["ewc"][0].aia
    with pytest.raises(SettingsError, match="lwf is not among the methods compared: naive, ewc"):
        spacenet.compare(cloud_stream(), ["naive", "ewc"], method_settings={"lwf": {"strength": 5}})
    with pytest.raises(SettingsError, match="unknown setting of ewc 'strenght', did you mean 'strength'"):
        spacenet.compare(cloud_stream(), ["naive", "ewc"], method_settings={"ewc": {"strenght": 5}})


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        (["naive", "ewk"], "unknown method 'ewk', did you mean 'ewc'"),
        (",", "methods: no method is named"),
        ([], "methods: no method is named"),
    ],
)
def test_methods_that_do_not_exist(methods: str | list[str], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        spacenet.compare(cloud_stream(), methods, **QUICK)


def test_seeds_out_of_range() -> None:
    with pytest.raises(SettingsError, match="seeds: 0 is out of range"):
        spacenet.compare(cloud_stream(), seeds=0)


@optuna_warns
def test_a_search_in_memory_and_its_best_settings(place: Path) -> None:
    seen: list[Trial] = []
    result = spacenet.sweep(cloud_stream(), "naive", trials=3, workers=1, on_trial=seen.append, **QUICK)
    assert isinstance(result, SweepResult)
    assert [trial.number for trial in seen] == [0, 1, 2]
    scores = [trial.score or 0.0 for trial in result.trials]
    assert scores == sorted(scores, reverse=True)
    best = result.trials[0].values["training.learning_rate"]
    assert result.best.model.training.learning_rate == best
    assert result.best.stream.validation == 0.0
    run = spacenet.run(cloud_stream(), "naive", config=result.best.to_plain(), progress=False)
    assert run.config.model == resolve_automatic(result.best.model, (10,))
    assert run.metrics["evaluated_on"] == "test set"
    assert list(place.iterdir()) == []


@optuna_warns
def test_a_search_in_a_folder_goes_on(place: Path) -> None:
    first = spacenet.sweep(cloud_stream(), "naive", trials=1, out="kept", workers=1, **QUICK)
    seen: list[Trial] = []
    more = spacenet.sweep(cloud_stream(), "naive", trials=3, out="kept", workers=1, on_trial=seen.append, **QUICK)
    assert [trial.number for trial in seen] == [1, 2]
    assert first.trials[0] in list(more.trials)
    assert len(more.trials) == 3
    assert read_toml(place / "kept" / BEST) == more.best.to_plain()
    with pytest.raises(RunError, match="holds another search"):
        spacenet.sweep(cloud_stream(), "naive", trials=3, seed=5, out="kept", **QUICK)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"trials": 0}, "trials: 0 is out of range"),
        ({"seeds": 0}, "seeds: 0 is out of range"),
        ({"validation": 0.0}, "validation: 0.0 is out of range"),
        ({"epoch": 1}, "did you mean 'epochs'"),
    ],
)
def test_a_search_that_cannot_work(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        spacenet.sweep(cloud_stream(), "naive", **arguments)  # type: ignore[arg-type]


def test_a_setting_that_is_given_is_not_searched() -> None:
    result = spacenet.sweep(cloud_stream(), "spacenet", trials=2, workers=1, phantom_classes=3, **QUICK)
    assert all("method.phantom_classes" not in trial.values for trial in result.trials)
    assert all("method.rewire_fraction" in trial.values for trial in result.trials)
    assert result.best.to_plain()["method"]["phantom_classes"] == 3
