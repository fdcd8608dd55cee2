"""The numbers about a model, against a ledger made by hand."""

import dataclasses
import json
from typing import Any

import pytest
import torch

from spacenet.config.model import NetConfig
from spacenet.data.preprocessing import Normalization
from spacenet.methods.density.calibration import FACTORS
from spacenet.methods.density.densities import ClassMemory
from spacenet.methods.spacenet import SpaceNet
from spacenet.model.file import to_bytes
from spacenet.model.inspection import LayerSpace, TaskSpace, inspect_model
from spacenet.model.model import Model
from spacenet.space.ledger import Connections
from tests.model.support import density_model, model_config, room
from tests.model.support import model as learned_model


def connections(*rows: tuple[int, int, int], kernel: tuple[int, ...] = ()) -> Connections:
    """(source, target, owner) each."""
    source, target, owner = (torch.tensor(column) for column in zip(*rows, strict=True))
    return Connections(source.int(), target.int(), owner.short(), torch.ones(len(rows), *kernel))


def by_hand() -> Model:
    """Three inputs, layers of 5 and 3 units, two tasks: the classes a and b, then b and 7."""
    space: dict[str, Any] = {"selected": (1,), "reserved": (1,), "connections": (1.0,)}
    model = Model(model_config(net=NetConfig(hidden=(5, 3)), seed=5, **space), (3,))
    model.normalization = Normalization(1 / 255, torch.tensor([0.5, 0.5, 0.5]), torch.tensor(0.25))
    model.tasks = [("a", "b"), ("b", 7)]
    model.method.tasks_learned = 2
    ledger = model.method.ledger
    first, second, third = ledger.blueprint.links
    ledger.grow(ledger.blueprint.output.name, 4)
    # In the first layer unit 0 is the first task's own, 1 belongs to both, 2 to the second, 3 to none;
    # 4 is the first task's too, and has lost its connections.
    ledger.add(first, connections((0, 0, 0), (2, 0, 0), (0, 1, 0), (2, 1, 1), (2, 2, 1)))
    # In the second 0 is used by both, 1 by the second task, 2 is the first task's and leads nowhere.
    ledger.add(second, connections((0, 0, 0), (1, 0, 1), (2, 1, 1), (0, 2, 0)))
    ledger.add(third, connections((0, 0, 0), (0, 1, 0), (0, 2, 1), (1, 3, 1)))
    ledger.reserve("hidden1", torch.tensor([0, 4]), 0)
    ledger.reserve("hidden1", torch.tensor([2]), 1)
    ledger.reserve("hidden2", torch.tensor([2]), 0)
    ledger.reserve("hidden2", torch.tensor([1]), 1)
    return model


def test_the_space() -> None:
    found = inspect_model(by_hand(), 1300)
    assert found.layers == [
        LayerSpace("hidden1", 5, unused=1, never_selected=None, shared=1, reserved=3, several=1, connections=5),
        LayerSpace("hidden2", 3, unused=0, never_selected=None, shared=1, reserved=2, several=1, connections=4),
    ]
    assert found.tasks == [
        TaskSpace(1, ("a", "b"), reserved=3, connections=7),
        TaskSpace(2, ("b", 7), reserved=2, connections=6),
    ]
    assert found.classes == ["a", "b", 7]
    assert (found.inputs, found.inputs_used, found.outputs, found.outputs_connections) == (3, 2, 4, 4)
    assert (found.connections, found.weights) == (13, 13)
    assert found.hidden == (5, 3)


def test_the_sizes() -> None:
    sizes = inspect_model(by_hand(), 1300).sizes
    assert (sizes.file, sizes.per_connection) == (1300, 100.0)
    assert sizes.dense == 4 * (3 * 5 + 5 * 3 + 3 * 4 + 5 + 3 + 4)
    # All inputs and outputs, units 0 to 2 of the first layer, 0 and 1 of the second.
    assert sizes.packed == 4 * (3 * 3 + 3 * 2 + 2 * 4 + 3 + 2 + 4)
    # A connection takes two numbers of 32 bits for its ends, 16 bits for the owner, 32 for the value.
    assert sizes.ledger == 13 * (4 + 4 + 2 + 4) + 2 * (3 + 5 + 3 + 4) + 4 * (5 + 3 + 4)


def test_what_is_kept_of_classes() -> None:
    """On the 8 inputs: four classes of 2 Gaussians, each its weight, rest and mean, and 3 directions with variances. To
    add samples, a Gaussian that is used has its count, mean and scatter, in 64 bits, and a class its count."""
    model = density_model("inputs")
    size = len(to_bytes(model))
    found = inspect_model(model, size)
    used = int(model.method.densities.classes.weight.isfinite().sum())  # type: ignore[attr-defined]
    moments = 2 * used * (1 + 8 + 8 * 9 // 2) // 4
    floats = 2 * (1 + 1 + 8 + 3 * (1 + 8)) + moments
    typical = 5 + 19
    kept = 4 * (4 * (floats + typical + 2) + 8 + 1 + 2 * len(FACTORS))
    assert found.class_memory == ClassMemory("inputs", 8, 2, 3, floats, kept)
    connections = found.connections
    kept += 2 * 4  # and the network's weight in each task
    assert found.sizes.per_connection == (size - kept) / connections
    assert found.sizes.ledger == sum(value.nbytes for value in model.method.network_state().values()) + kept
    # To predict, every Gaussian is a mean and directions, and a number for each of these; of tables in 64 bits. So few
    # samples give the network no weight: it is not needed.
    assert found.sizes.packed == 8 * 4 * 2 * (1 + 3) * (8 + 1)


def test_what_features_are_looked_at_with_is_kept_too() -> None:
    model = density_model("features")
    kept = inspect_model(model, 1).class_memory
    assert kept is not None
    assert (kept.representation, kept.bytes) == ("features", model.method.extra_bytes())
    assert json.loads(json.dumps(dataclasses.asdict(inspect_model(model, 1))))["class_memory"]["gaussians"] == 2


def test_of_other_models_nothing_is_kept_of_classes() -> None:
    assert inspect_model(by_hand(), 1).class_memory is None


def test_what_is_left_is_what_the_model_says() -> None:
    model = learned_model()
    assert inspect_model(model, 1).tasks_left == room(model) > 0


def test_a_method_that_cannot_go_on_has_no_space_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SpaceNet, "needs_old_data", True)
    assert inspect_model(by_hand(), 1).tasks_left is None


@pytest.mark.parametrize(
    ("normalization", "words"),
    [
        ((1 / 255, [0.5, 0.5], 0.25), "bytes (0 to 255) as 0 to 1, minus 0.5, divided by 0.25"),
        ((1.0, [0.0, 2.0], 3.0), "minus a number for each feature (0 to 2), divided by 3"),
        ((0.0625, [1.0, 1.0], [1.0, 2.0]), "times 0.0625, minus 1, divided by a number for each feature (1 to 2)"),
    ],
)
def test_normalisation_in_words(normalization: tuple[float, list[float], float | list[float]], words: str) -> None:
    model, (scale, mean, std) = by_hand(), normalization
    model.normalization = Normalization(scale, torch.tensor(mean), torch.tensor(std))
    assert inspect_model(model, 1).normalization == words


def test_what_was_measured() -> None:
    model = by_hand()
    assert inspect_model(model, 1).measured == {}
    model.metrics = {"acc": 71.5, "bwt": -3, "tasks_learned": 1, "stream": "split-x", "evaluated_on": "test set"}
    found = inspect_model(model, 1)
    assert found.measured == {"acc": 71.5, "bwt": -3.0}
    assert (found.measured_after, found.measured_on) == (1, "split-x, test set")


def test_metrics_of_a_stranger_are_not_trusted() -> None:
    model = by_hand()
    model.metrics = {"acc": "much", "bwt": None, "tasks_learned": [1], "stream": {"a": 1}, "fwt": float("nan")}
    found = inspect_model(model, 1)
    assert (found.measured, found.measured_after, found.measured_on) == ({}, None, "")


def test_everything_can_be_said_in_json() -> None:
    model = learned_model([0, 1], ["x", "y"])
    found = inspect_model(model, len(to_bytes(model)))
    assert json.loads(json.dumps(dataclasses.asdict(found), allow_nan=False))["classes"] == [0, 1, "x", "y"]
