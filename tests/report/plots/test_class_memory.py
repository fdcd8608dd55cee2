"""Class statistics: the plot shows what the run recorded."""

import xml.etree.ElementTree as ET

import pytest

from spacenet.experiments.analysis import Truncated
from spacenet.report.plots.class_memory import class_memory_plot
from spacenet.report.plots.plot import Plot
from tests.report.conftest import learn
from tests.report.made_up import run_data


def plot_of(*accuracies: float) -> Plot:
    directions = [*(0, 1, 2, 4, 8, 16)[: len(accuracies) - 1], 19]
    curve = [Truncated(r, 2 * (2 + r + 392 * (r + 1)), acc) for r, acc in zip(directions, accuracies, strict=True)]
    plot = class_memory_plot(run_data(truncated=tuple(curve)))
    assert plot is not None
    return plot


def test_the_points_are_those_of_a_learned_run() -> None:
    run = learn("spacenet-density")
    plot = class_memory_plot(run)
    assert plot is not None
    assert plot.table is not None
    assert run.model is not None
    kept = run.model.method.class_memory((8,))
    assert kept is not None
    assert plot.table.rows[-1] == [str(kept.directions), f"{kept.floats:,}", f"{run.metrics['acc']:.2f}"]
    assert plot.table.rows[0][0] == "0"


def test_the_title_says_how_little_would_be_enough() -> None:
    plot = plot_of(92.0, 94.0, 95.4, 97.1, 98.2, 98.63, 98.6)
    assert plot.title == "98.6 % with 15,722 values per class; 7,076 are enough for 98.2 %"
    assert "means only: 788 values, 92.0 %; 1 direction: 1,574 values, 94.0 %; 2 directions" in plot.text
    steep = plot_of(20.0, 50.0, 80.0)
    assert steep.title == "80.0 % with 15,722 values per class; with 1,574 it would be 50.0 %"
    flat = plot_of(80.0, 80.2, 80.1)
    assert flat.title == "80.1 % with 15,722 values per class; 788 are enough for 80.0 %"


@pytest.mark.parametrize("accuracies", [(92, 94, 95.4, 97.1, 98.2, 98.63, 98.6), (100, 100), (0, 0, 0), (90, 80, 20)])
def test_rising_flat_and_falling_lines_can_be_drawn(accuracies: tuple[float, ...]) -> None:
    drawn = plot_of(*accuracies).svg()
    texts = [text.strip() for text in ET.fromstring(drawn).itertext() if text.strip()]
    assert f"19 directions: {accuracies[-1]:.1f} % (this run)" in texts
    assert any(text.startswith("means only") for text in texts)
    assert "1,000" in texts
