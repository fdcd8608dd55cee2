"""A small model, and data for it."""

from typing import Any

import numpy as np

from spacenet.config.model import ModelConfig, NetConfig, PreprocessingConfig
from spacenet.config.training import TrainingConfig
from spacenet.methods import get_method
from spacenet.model.model import Model

SHAPE = (8,)
SPACE: dict[str, Any] = {"selected": (10,), "reserved": (4,), "connections": (0.1,)}
TRAINING = TrainingConfig(epochs=8, batch_size=8, learning_rate=0.1)
PREPROCESSING = PreprocessingConfig(centering=0.0, standardize="all")


LIGHT: dict[str, dict[str, Any]] = {
    "acil": {"buffer_size": 40},
    "ranpac": {"random_features": 40},
    "dgr": {"generator_hidden": (12,), "latent": 4},
    "er": {"memory_size": 20},
    "icarl": {"memory_size": 20},
}
"""Settings of methods whose defaults take long, or much memory."""


def blobs(classes: list[Any], per_class: int = 20, shape: tuple[int, ...] = SHAPE) -> tuple[np.ndarray, np.ndarray]:
    """Samples around a point of its own for each class, the same every time."""
    x, y = [], []
    for label in classes:
        rng = np.random.default_rng(sum(map(ord, str(label))))
        x.append(3 * rng.normal(size=shape) + 0.5 * rng.normal(size=(per_class, *shape)))
        y += [label] * per_class
    return np.concatenate(x).astype(np.float32), np.array(y)


def model_config(
    method: str = "spacenet",
    net: NetConfig | None = None,
    *,
    training: TrainingConfig = TRAINING,
    preprocessing: PreprocessingConfig = PREPROCESSING,
    seed: int = 0,
    **settings: Any,
) -> ModelConfig:
    """A configuration for small data; `settings` are the method's."""
    kind = get_method(method)
    own = kind.Settings(**{**(SPACE if kind.divides_network else LIGHT.get(method, {})), **settings})
    return ModelConfig(method, net or NetConfig(hidden=(30, 30)), training, preprocessing, own, seed)


def new_model(
    shape: tuple[int, ...] = SHAPE, preprocessing: PreprocessingConfig = PREPROCESSING, **settings: Any
) -> Model:
    return Model(model_config(preprocessing=preprocessing, **settings), shape)


def model(*tasks: list[Any], **settings: Any) -> Model:
    """A model that has learned these tasks; by default two of two classes."""
    learned = new_model(**settings)
    for task in tasks or ([0, 1], [2, 3]):
        learned.learn(*blobs(task))
    return learned


def room(learned: Model) -> int:
    """How many more tasks fit into a network that is divided among tasks."""
    left = learned.space_left()
    assert left is not None
    return left


DENSITY_CASES: dict[str, tuple[tuple[int, ...], NetConfig, dict[str, Any]]] = {
    "inputs": (SHAPE, NetConfig(hidden=(30, 30)), {}),
    "edges": ((8, 8), NetConfig(hidden=(30, 30)), {}),
    "features": (
        (1, 8, 8),
        NetConfig("small-cnn", (8, 8, 10)),
        {"selected": (4,), "reserved": (2,), "connections": (0.3,)},
    ),
}
"""Models with class statistics on each representation: the inputs' shape, the network, settings."""


def density_model(kind: str, *tasks: list[Any], **settings: Any) -> Model:
    """A model with class statistics on a representation, after these tasks; by default two of two classes."""
    shape, net, own = DENSITY_CASES[kind]
    training = TrainingConfig(epochs=2, batch_size=8, learning_rate=0.1)
    config = model_config("spacenet-density", net, training=training, **{"directions": 3, **own, **settings})
    learned = Model(config, shape)
    for task in tasks or ([0, 1], ["cat", "dog"]):
        learned.learn(*blobs(task, shape=shape))
    return learned
