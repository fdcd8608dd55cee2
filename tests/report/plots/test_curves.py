import numpy as np
import pytest

from spacenet.experiments.comparison import ComparisonData
from spacenet.report.plots.curves import accuracy_curves, curves_plot
from tests.report.made_up import comparison_data, metrics, run_data, words_in


def test_a_curve_is_the_mean_over_seeds_with_their_standard_deviation() -> None:
    seeds = [metrics([[90.0, 0.0], [60.0, 80.0]]), metrics([[80.0, 0.0], [40.0, 80.0]], seed=1)]
    comparison = comparison_data(*seeds, metrics([[50.0, 0.0], [20.0, 30.0]], method="naive"))
    spacenet, naive = accuracy_curves(comparison)
    assert (spacenet.method, spacenet.mean.tolist()) == ("spacenet", [85.0, 65.0])
    np.testing.assert_allclose(spacenet.std, [np.std([90, 80], ddof=1), np.std([70, 60], ddof=1)])
    assert naive.mean.tolist() == [50.0, 25.0]
    assert np.isnan(naive.std).all()
    plot = curves_plot(comparison)
    assert plot is not None
    assert "spacenet has the highest accuracy over the classes seen so far (AIA 75.0 %)" in plot.title
    assert "bands: standard deviation over seeds" in words_in(plot)
    assert plot.table is not None
    assert plot.table.rows == [["spacenet", "85.00 ± 7.07", "65.00 ± 7.07"], ["naive", "50.00", "25.00"]]


def test_one_seed_has_no_band() -> None:
    plot = curves_plot(comparison_data(metrics(), metrics(method="naive")))
    assert plot is not None
    assert "standard deviation" not in words_in(plot) + plot.text


@pytest.mark.parametrize("count", [9, 20])
def test_many_methods_are_named_apart(count: int) -> None:
    runs = {f"method-{number}": [run_data()] for number in range(count)}
    plot = curves_plot(ComparisonData("mine", "test set", runs, []))
    assert plot is not None
    words = words_in(plot)
    assert all(f"method-{number}: 80.0 %" in words for number in range(count))


def test_one_task_has_no_curve() -> None:
    assert curves_plot(comparison_data(metrics([[90.0]]), metrics([[80.0]], method="naive"))) is None
