"""A small model, and data for it."""

from typing import Any

import numpy as np

from spacenet.config.training import TrainingConfig
from spacenet.methods.spacenet import SpaceNet
from spacenet.methods.spacenet_density import SpaceNetDensity
from spacenet.model.model import Model, Recipe
from spacenet.nets import NetConfig

SHAPE = (8,)


def blobs(classes: list[Any], per_class: int = 20, shape: tuple[int, ...] = SHAPE) -> tuple[np.ndarray, np.ndarray]:
    """Samples around a point of its own for each class, the same every time."""
    x, y = [], []
    for label in classes:
        rng = np.random.default_rng(sum(map(ord, str(label))))
        x.append(3 * rng.normal(size=shape) + 0.5 * rng.normal(size=(per_class, *shape)))
        y += [label] * per_class
    return np.concatenate(x).astype(np.float32), np.array(y)


def new_model(shape: tuple[int, ...] = SHAPE, **options: Any) -> Model:
    settings = {"selected": (10,), "reserved": (4,), "connections": (0.1,), **options}
    training = TrainingConfig(epochs=8, batch_size=8, learning_rate=0.1)
    return Model(
        Recipe("spacenet", 0, NetConfig(hidden=(30, 30)), training, SpaceNet.Settings(**settings), shape),
    )


def model(*tasks: list[Any], **options: Any) -> Model:
    """A model that has learned these tasks; by default two of two classes."""
    learned = new_model(**options)
    for task in tasks or ([0, 1], [2, 3]):
        learned.learn(*blobs(task))
    return learned


DENSITY_CASES: dict[str, tuple[tuple[int, ...], NetConfig, dict[str, Any]]] = {
    "inputs": (SHAPE, NetConfig(hidden=(30, 30)), {}),
    "edges": ((8, 8), NetConfig(hidden=(30, 30)), {}),
    "features": (
        (1, 8, 8),
        NetConfig("small-cnn", (8, 8, 10)),
        {"selected": (4,), "reserved": (2,), "connections": (0.3,)},
    ),
}
"""Models with summaries of classes on each representation: the inputs' shape, the network, settings."""


def density_model(kind: str, *tasks: list[Any], **options: Any) -> Model:
    """A model with summaries on a representation that has learned these tasks; by default two of two classes."""
    shape, net, own = DENSITY_CASES[kind]
    settings = {"selected": (10,), "reserved": (4,), "connections": (0.1,), "directions": 3, **own, **options}
    training = TrainingConfig(epochs=2, batch_size=8, learning_rate=0.1)
    learned = Model(Recipe("spacenet-density", 0, net, training, SpaceNetDensity.Settings(**settings), shape))
    for task in tasks or ([0, 1], ["cat", "dog"]):
        learned.learn(*blobs(task, shape=shape))
    return learned
