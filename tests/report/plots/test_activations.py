from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from spacenet.experiments.analysis import Analysis
from spacenet.experiments.run import RunData
from spacenet.report.plots.activations import activations_plot, count_active, layer_activations, share_active
from tests.report.made_up import complete_run, words_in


@pytest.fixture
def run(tmp_path: Path) -> RunData:
    return complete_run(tmp_path)


def test_the_heat_maps_are_what_the_run_recorded(run: RunData) -> None:
    layers = layer_activations(run)
    assert list(layers) == ["hidden1", "hidden2"]
    for name, values in layers.items():
        kept = run.analysis.activations[name].numpy()
        assert sorted(map(tuple, values.T)) == sorted(map(tuple, kept.T))
        assert share_active(values) == pytest.approx(100 * np.count_nonzero(kept) / kept.size)
        assert not values[:, count_active(values) :].any()


def test_units_are_sorted_by_the_class_they_prefer(run: RunData) -> None:
    values = torch.tensor([[0.0, 1, 2, 0], [0.0, 3, 2, 0], [0.0, 0, 2, 5], [0.0, 0, 2, 5]])
    run = replace(run, analysis=Analysis(None, {"hidden1": values}, ("a", "a", "b", "b")))
    np.testing.assert_array_equal(layer_activations(run)["hidden1"], values[:, [1, 2, 3, 0]])
    assert count_active(values.numpy()) == 3
    plot = activations_plot(run)
    assert plot is not None
    assert plot.title == "After task 1, a sample activates 50 % of hidden1"
    assert "class b" in words_in(plot)
    assert "2 samples" in words_in(plot)


def test_of_many_layers_the_first_and_the_last_are_shown(run: RunData) -> None:
    names = [f"hidden{number}" for number in range(1, 12)]
    kept = {name: torch.rand(3, 5, generator=torch.manual_seed(0)) for name in sorted(names)}
    many = replace(
        run,
        analysis=Analysis(None, kept, ("a", "a", "b")),
        metrics={"layers": [{"name": name} for name in names]},
    )
    assert list(layer_activations(many)) == ["hidden1", "hidden2", "hidden10", "hidden11"]
    plot = activations_plot(many)
    assert plot is not None
    assert plot.svg()


def test_inactive_layers_and_single_classes_can_be_drawn(run: RunData) -> None:
    kept = Analysis(None, {"hidden1": torch.zeros(2, 4)}, ("a", "a"))
    plot = activations_plot(replace(run, analysis=kept))
    assert plot is not None
    assert "inactive" in words_in(plot)
    assert activations_plot(replace(run, analysis=Analysis(None, {}, ()))) is None
