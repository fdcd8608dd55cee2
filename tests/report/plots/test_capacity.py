from dataclasses import replace

from spacenet.model.inspection import inspect_model
from spacenet.report.plots.capacity import CapacityData, LayerUse, capacity_data, capacity_picture
from spacenet.report.run_data import RunFacts
from tests.report.plots.space_support import words_in


def test_the_map_is_that_of_the_ledger(spacenet_run: RunFacts) -> None:
    data = capacity_data(spacenet_run)
    assert data is not None
    assert spacenet_run.model is not None
    found, ledger = inspect_model(spacenet_run.model, 0), spacenet_run.model.method.ledger
    for layer, expected in zip(data.layers, found.layers, strict=True):
        assert layer.reserved == tuple(int((ledger.state[layer.name] == task).sum()) for task in range(3))
        assert (layer.name, layer.units, layer.shared, layer.unused) == (
            expected.name,
            expected.units,
            expected.shared,
            expected.unused,
        )
        assert sum(layer.reserved) + layer.shared + layer.unused == layer.units
    assert data.tasks_left == found.tasks_left


def test_the_picture_names_tasks_and_says_how_much_is_left(spacenet_run: RunFacts) -> None:
    data = capacity_data(spacenet_run)
    assert data is not None
    plot = capacity_picture(data)
    assert plot.title == f"3 tasks reserve 15 of 30 units in each layer; {data.tasks_left} more like the last fit"
    written = words_in(plot)
    for words in ("task 1", "task 3", "5 units", "hidden2", f"{data.layers[0].shared} units"):
        assert words in written


def test_titles_of_other_runs() -> None:
    def title(left: int | None, *layers: LayerUse) -> str:
        return capacity_picture(CapacityData(layers, left)).title

    one = LayerUse("hidden1", 10, (5,), 3, 2)
    assert title(0, one) == "1 task reserves 5 of 10 units of hidden1; no other like the last fits"
    assert title(None, one) == "1 task reserves 5 of 10 units of hidden1"
    assert title(1, one, LayerUse("hidden2", 20, (5,), 15, 0)).startswith("1 task reserves 25 to 50 % of the units in")
    assert title(100, one).endswith("; 100 or more others fit")


def test_many_layers_and_many_tasks_are_still_a_small_picture() -> None:
    layers = tuple(LayerUse(f"group{number}", 640, (6,) * 100, 30, 10) for number in range(30))
    plot = capacity_picture(CapacityData(layers, 2))
    assert len(plot.svg()) < 150_000
    assert "group29 (640)" in words_in(plot)
    assert len(plot.text) < 30 * 200


def test_without_a_space_there_is_no_map(spacenet_run: RunFacts) -> None:
    assert capacity_data(replace(spacenet_run, model=None)) is None
