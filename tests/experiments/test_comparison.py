from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spacenet.config.presets import preset_config
from spacenet.config.run import RunConfig
from spacenet.errors import RunError, SettingsError
from spacenet.experiments.analysis import Analysis
from spacenet.experiments.comparison import check_comparable, compare_outcomes, comparison_configs
from spacenet.experiments.jobs import Job, Outcome
from spacenet.experiments.run import RunData
from spacenet.utils.text import MeanStd


def data(method: str, seed: int = 0, config: RunConfig | None = None, **over: Any) -> RunData:
    plain = {
        "acc": 50.0,
        "bwt": -10.0,
        "aia": 60.0,
        "last_acc": 50.0,
        "forgetting": 9.0,
        "parameters": 7,
        "bytes_kept": 9,
        "extra_bytes": 0,
        "images_kept": 0,
        "units_added": 0,
    }
    facts = {"stream": "split-digits", "evaluated_on": "test set", "seconds": 2.0, "task_il_acc": 90.0}
    wanted = config or preset_config("split-digits", method)
    return RunData(wanted.with_seed(seed), {**facts, **plain, **over}, Analysis())


def outcome(run: RunData, error: RunError | None = None) -> Outcome:
    return Outcome(Job(run.config), run, error)


def test_settings_are_for_all_methods_or_for_one() -> None:
    settings = {"training": {"epochs": 3}, "methods": {"spacenet": {"method": {"phantom_classes": 1}}}}
    over: dict[str, dict[str, Any]] = {"naive": {"stream": {"validation": 0.2}}, "spacenet": {"seed": 3}}
    made = comparison_configs("split-digits", over, settings)
    assert [config.model.training.epochs for config in made.values()] == [3, 3]
    assert vars(made["spacenet"].model.method_settings)["phantom_classes"] == 1
    assert [config.stream.validation for config in made.values()] == [0.2, 0.0]
    assert [config.model.seed for config in made.values()] == [0, 3]
    by_name = comparison_configs("split-digits", over, {"methods": {"spacenet": {"phantom_classes": 1, "epochs": 2}}})
    assert by_name["spacenet"].model.training.epochs == 2
    assert by_name["spacenet"].model.method_settings == made["spacenet"].model.method_settings
    with pytest.raises(SettingsError, match=r"write \[methods.NAME\]"):
        comparison_configs("split-digits", {"naive": {}}, {"method": {"x": 1}})
    with pytest.raises(SettingsError, match="unknown method 'nothing'"):
        comparison_configs("split-digits", {"nothing": {}}, {})


def test_rows_are_means_over_seeds_in_the_order_of_the_methods() -> None:
    runs = [data("spacenet", 1, acc=74.0), data("spacenet", 0, acc=70.0), data("naive", seconds=4.0)]
    outcomes = [outcome(run) for run in runs]
    outcomes.append(outcome(data("joint"), RunError("stopped in the middle")))
    found = compare_outcomes(outcomes)
    spacenet, naive = found.rows
    assert (naive.method, naive.relative_time, naive.seeds) == ("naive", 1.0, 1)
    assert (spacenet.acc.mean, spacenet.relative_time, spacenet.strategy) == (72.0, 0.5, "Architectural")
    assert spacenet.acc.std == pytest.approx(2.8284, abs=1e-3)
    assert naive.acc.std is None
    assert (naive.aia, naive.forgetting) == (MeanStd(60.0), MeanStd(9.0))
    assert [run.config.model.seed for run in found.runs["spacenet"]] == [0, 1]
    assert found.seeds == [0, 1]
    assert (found.stream, found.evaluated_on) == ("split-digits", "test set")
    assert [str(failure) for failure in found.failures] == ["joint seed 0: stopped in the middle"]
    assert compare_outcomes(outcomes[:2]).rows[0].relative_time is None


def test_a_comparison_of_nothing_but_failures() -> None:
    job = Job(preset_config("split-digits", "naive"))
    found = compare_outcomes([Outcome(job, error=RunError("diverged")), Outcome(job)])
    assert (list(found.rows), found.labels, found.seeds) == ([], [], [])
    assert [failure.reason for failure in found.failures] == ["diverged", "not finished"]


def test_runs_that_do_not_belong_together_are_not_compared() -> None:
    plain = preset_config("split-digits", "naive")
    longer = preset_config("split-digits", "naive", {"training": {"epochs": 99}})
    elsewhere = preset_config("split-digits", "ewc", {"stream": {"tasks": "0,1"}})
    moved = replace(plain, stream=replace(plain.stream, data_dir=Path("there")))
    check_comparable([data("naive"), data("naive", 1, moved), data("spacenet")])
    for second, message in (
        (data("ewc", 0, elsewhere), "ewc seed 0 and naive seed 0 are runs on different streams"),
        (data("naive", 1, longer), "naive seed 1 and naive seed 0 are naive with different settings"),
        (data("naive"), "naive with the same seed"),
    ):
        with pytest.raises(RunError, match=message):
            check_comparable([data("naive"), second])
