"""Plots of a comparison show the numbers of its runs, and name the right methods."""

import statistics
from typing import Any

import numpy as np
import pytest

from spacenet.experiments.comparison import ComparisonData
from spacenet.report.plots.by_task import by_task_plot, last_accuracies
from spacenet.report.plots.collect import comparison_plots
from spacenet.report.plots.methods import (
    acc_plot,
    rank_methods,
    size_plot,
    strategy_markers,
    trade_off,
    trade_off_plot,
)
from spacenet.utils.text import MeanStd
from tests.report.made_up import comparison_data, metrics, row, run_data


def run(method: str, last: list[float], seed: int = 0, **over: Any) -> dict[str, Any]:
    """A run of a method that ends with these accuracies."""
    matrix = [[90.0] * len(last)] * (len(last) - 1) + [last]
    return metrics(matrix, method=method, seed=seed, **over)


@pytest.fixture
def comparison() -> ComparisonData:
    return comparison_data(
        run("naive", [0.0, 98.0], seconds=2.0, bytes_kept=4096, parameters=1000),
        run("naive", [0.0, 94.0], seed=1, seconds=4.0, bytes_kept=4096, parameters=1000),
        run("spacenet", [80.0, 70.0], seconds=6.0, bytes_kept=2048, parameters=300),
        run("spacenet", [84.0, 74.0], seed=1, seconds=6.0, bytes_kept=2048, parameters=300),
        run("packnet", [60.0, 50.0], seconds=3.0, bytes_kept=5000, parameters=1000),
        run("er", [95.0, 97.0], seconds=3.0, bytes_kept=9000, images_kept=50, parameters=1000),
        run("joint", [99.0, 99.0], seconds=9.0, bytes_kept=9000, images_kept=50, parameters=1000),
    )


def test_bounds_and_old_data_stand_apart(comparison: ComparisonData) -> None:
    assert rank_methods(comparison.rows) == (["spacenet", "packnet"], ["er"])


def test_memory_is_what_the_runs_kept(comparison: ComparisonData) -> None:
    data = trade_off(comparison, "memory")
    assert [row.method for row in data.rows] == ["joint", "er", "spacenet", "packnet", "naive"]
    assert data.costs[2].mean == 2048
    assert data.rows[2].acc.std == pytest.approx(statistics.stdev([75, 79]))
    assert trade_off_plot(comparison, "memory").title == (
        "spacenet reaches 77 % with 2.0 KiB; the next without stored samples is packnet with 55 % and 4.9 KiB; "
        "with stored samples er reaches 96 % with 8.8 KiB"
    )


def test_time_is_relative_to_naive_if_it_is_there(comparison: ComparisonData) -> None:
    data = trade_off(comparison, "time")
    times = {row.method: cost.mean for row, cost in zip(data.rows, data.costs, strict=True)}
    assert times == pytest.approx({"naive": 1, "spacenet": 2, "packnet": 1, "er": 1, "joint": 3})
    two = comparison_data(run("spacenet", [80.0], seconds=6.0), run("er", [90.0], seconds=3.0))
    alone = trade_off(two, "time")
    assert not alone.relative
    assert [cost.mean for cost in alone.costs] == [3, 6]


def test_the_first_in_rank_need_not_differ_from_the_second() -> None:
    near = [(70.0, 68.0), (72.0, 74.5), (71.0, 70.0)]
    found = [
        run(name, [accs[place]], seed)
        for seed, accs in enumerate(near)
        for place, name in enumerate(("er", "spacenet"))
    ]
    title = acc_plot(comparison_data(*found)).title
    assert (
        title == "er is the most accurate: 71.0 ± 1.0 %; next is spacenet with 70.8 ± 3.3 %, no significant difference"
    )
    apart = [run("er", [90.0 + seed], seed) for seed in range(3)] + found[1::2]
    assert "significant" not in acc_plot(comparison_data(*apart)).title


def test_methods_are_ranked(comparison: ComparisonData) -> None:
    plot = acc_plot(comparison)
    assert plot.title.startswith("er is the most accurate: 96.0 %; next is spacenet with 77.0 ± 2.8 %")
    assert "joint 99.0 %; er 96.0 %; spacenet 77.0 ± 2.8 %; packnet 55.0 %; naive 48.0 ± 1.4 %." in plot.text
    title = size_plot(comparison).title
    assert title == "spacenet needs 300 parameters; the 4 largest have 3.3 times as many (1,000)"


def test_the_model_size_has_what_is_kept_besides_the_network() -> None:
    kept = {"spacenet": (300, 0), "dgr": (1000, 8000), "icarl": (1000, 1200), "naive": (1000, 0)}
    rows = [row(name, parameters=own, extra_bytes=extra) for name, (own, extra) in kept.items()]
    plot = size_plot(ComparisonData("mine", "test set", {}, rows))
    assert plot.title == (
        "spacenet needs 300 numbers (parameters and extra memory); the largest, dgr, has 10.0 times as many (3,000)"
    )
    assert "spacenet 300; naive 1,000; icarl 1,000 + 300; dgr 1,000 + 2,000." in plot.text
    assert "log scale" in plot.svg()
    same = size_plot(ComparisonData("mine", "test set", {}, rows[3:]))
    assert same.title == "All methods have the same number of parameters: 1,000"


def test_tasks_by_method(comparison: ComparisonData) -> None:
    data = last_accuracies(comparison)
    assert data.methods == ["joint", "er", "spacenet", "packnet", "naive"]
    np.testing.assert_allclose(data.means[2], [82, 72])
    assert data.over_seeds is not None
    np.testing.assert_allclose(data.over_seeds[2], [statistics.stdev([80, 84]), statistics.stdev([70, 74])])
    np.testing.assert_allclose(data.average_stds[[0, 2]], [np.nan, statistics.stdev([75, 79])])
    plot = by_task_plot(comparison)
    assert plot is not None
    assert plot.title == (
        "After the last task, spacenet has at least 72 % on every task, er (with stored samples) at least 95 %; "
        "naive has forgotten all tasks but the last"
    )


@pytest.mark.parametrize(("count", "tasks", "bars"), [(2, 2, True), (6, 6, True), (8, 5, False), (20, 40, False)])
def test_many_methods_become_a_heat_map(count: int, tasks: int, bars: bool) -> None:
    source = np.random.default_rng(0)
    runs = [run(f"method-{number}", source.uniform(0, 100, tasks).tolist()) for number in range(count)]
    rows = [
        row(each["method"], strategy=f"Strategy {number % 6}", acc=MeanStd(each["acc"]), parameters=number)
        for number, each in enumerate(runs)
    ]
    comparison = ComparisonData("mine", "test set", {each["method"]: [run_data(each)] for each in runs}, rows)
    assert last_accuracies(comparison).over_seeds is None
    plots = comparison_plots(comparison)
    assert len(plots) == 6
    assert plots[3].text.startswith("Bar chart" if bars else "Heat map")
    for plot in plots if count == 20 else plots[3:4]:
        assert len(plot.svg()) < 150_000


def test_several_seeds_are_drawn_with_their_spread(comparison: ComparisonData) -> None:
    assert "standard deviation over seeds" in comparison_plots(comparison)[0].svg()
    single = comparison_data(run("spacenet", [80.0, 70.0]), run("er", [90.0, 80.0]))
    assert "over seeds" not in "".join(plot.svg() for plot in comparison_plots(single))


def test_one_method_is_no_comparison() -> None:
    assert comparison_plots(comparison_data(run("spacenet", [80.0, 70.0]))) == []


def test_a_strategy_looks_the_same_everywhere() -> None:
    assert strategy_markers(["Bound"])["Bound"] == strategy_markers(["Rehearsal", "Bound", "Architectural"])["Bound"]
    looks = strategy_markers(["Bound", "Rehearsal", "Of my own"])
    assert len(set(looks.values())) == 3
