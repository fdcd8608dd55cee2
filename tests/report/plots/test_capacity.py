from dataclasses import replace
from pathlib import Path

from spacenet.experiments.run import RunData
from spacenet.model.inspection import inspect_model
from spacenet.report.plots.capacity import CapacityData, LayerAreas, capacity_data, capacity_plot
from tests.report.made_up import complete_run, words_in


def test_the_map_of_a_learned_run_is_that_of_its_ledger(learned_run: RunData) -> None:
    data = capacity_data(learned_run)
    assert data is not None
    assert learned_run.model is not None
    found, ledger = inspect_model(learned_run.model, 0), learned_run.model.method.ledger
    for layer, expected in zip(data.layers, found.layers, strict=True):
        assert layer.reserved == tuple(int((ledger.state[layer.name] == task).sum()) for task in range(3))
        assert (layer.name, layer.units, layer.unused) == (expected.name, expected.units, expected.unused)
        assert sum(layer.reserved) + layer.shared + layer.unused == layer.units
    assert data.tasks_left == found.tasks_left


def test_the_plot_names_tasks_and_says_how_much_is_left(tmp_path: Path) -> None:
    run = complete_run(tmp_path)
    data = capacity_data(run)
    assert data is not None
    plot = capacity_plot(data)
    assert plot.title == "3 tasks reserve 15 of 30 units in each layer; room for 2 more tasks like the last one"
    written = words_in(plot)
    for words in ("task 1", "task 3", "5 units", "hidden2", f"{data.layers[0].shared} units"):
        assert words in written
    assert capacity_data(replace(run, model=None)) is None


def test_titles_of_other_runs() -> None:
    def title(left: int | None, *layers: LayerAreas) -> str:
        return capacity_plot(CapacityData(layers, left)).title

    one = LayerAreas("hidden1", 10, (5,), 3, 2)
    assert title(0, one) == "1 task reserves 5 of 10 units of hidden1; no room for another task like the last one"
    assert title(None, one) == "1 task reserves 5 of 10 units of hidden1"
    assert title(1, one, LayerAreas("hidden2", 20, (5,), 15, 0)).startswith(
        "1 task reserves 25 to 50 % of the units in"
    )
    assert title(100, one).endswith("; room for at least 100 more tasks like the last one")


def test_many_layers_and_many_tasks_are_still_a_small_plot() -> None:
    layers = tuple(LayerAreas(f"group{number}", 640, (6,) * 100, 30, 10) for number in range(30))
    plot = capacity_plot(CapacityData(layers, 2))
    assert len(plot.svg()) < 150_000
    assert "group29 (640)" in words_in(plot)
    assert len(plot.text) < 30 * 200
