from dataclasses import replace
from pathlib import Path

from spacenet.experiments.run import RunData
from spacenet.model.capacity import LayerAreas, layer_areas
from spacenet.model.inspection import inspect_model
from spacenet.report.plots.capacity import capacity_plot, capacity_title, draw_capacity
from spacenet.report.plots.plot import Plot
from tests.report.made_up import complete_run, words_in


def test_the_map_of_a_learned_run_is_that_of_its_ledger(learned_run: RunData) -> None:
    assert learned_run.model is not None
    found, ledger = inspect_model(learned_run.model, 0), learned_run.model.method.ledger
    for layer, expected in zip(layer_areas(learned_run.model), found.layers, strict=True):
        assert layer.reserved == [int((ledger.state[layer.name] == task).sum()) for task in range(3)]
        assert (layer.name, layer.units, layer.unused) == (expected.name, expected.units, expected.unused)
        assert sum(layer.reserved) + layer.shared + layer.unused == layer.units


def test_the_plot_names_tasks_and_says_how_much_is_left(tmp_path: Path) -> None:
    run = complete_run(tmp_path)
    assert run.model is not None
    plot = capacity_plot(run)
    assert plot is not None
    assert plot.title == "3 tasks reserve 15 of 30 units in each layer; room for 2 more tasks like the last one"
    written = words_in(plot)
    for words in ("task 1", "task 3", "5 units", "hidden2", f"{layer_areas(run.model)[0].shared} units"):
        assert words in written
    assert capacity_plot(replace(run, model=None)) is None


def test_titles_of_other_runs() -> None:
    one = LayerAreas("hidden1", 10, [5], 3, 2)
    start = "1 task reserves 5 of 10 units of hidden1"
    assert capacity_title([one], 0) == f"{start}; no room for another task like the last one"
    assert capacity_title([one], None) == start
    two = capacity_title([one, LayerAreas("hidden2", 20, [5], 15, 0)], 1)
    assert two.startswith("1 task reserves 25 to 50 % of the units in")
    assert capacity_title([one], 100).endswith("; room for at least 100 more tasks like the last one")


def test_many_layers_and_many_tasks_are_still_a_small_plot() -> None:
    layers = [LayerAreas(f"group{number}", 640, [6] * 100, 30, 10) for number in range(30)]
    plot = Plot("capacity-map", "", "", lambda: draw_capacity(layers))
    assert len(plot.svg()) < 150_000
    assert "group29 (640)" in words_in(plot)
