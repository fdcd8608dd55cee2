"""Random small models, and random tasks for them."""

import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from spacenet.data.preprocessing import Array
from spacenet.model.labels import Label
from tests.model.support import blobs

LABEL_TYPES = ("int", "str", "float", "share", "bool")
DTYPES = ("float32", "float32", "float64", "uint8", "int16")
SHARED: dict[str, dict[str, Any]] = {
    "naive": {},
    "ewc": {"fisher_samples": 10, "strength": 0.1},
    "ar1": {"strength": 0.1},
    "er": {"memory_size": 200},
    "icarl": {"memory_size": 200},
    "gaussian": {"directions": 3},
    "slda": {},
    "pnn": {"column": 0.2},
    "piggyback": {},
}
"""Methods that divide no network among tasks, and settings of theirs."""
FREE_INTEGERS = 10_000
"""Labels are drawn below this number."""


@dataclass
class Kind:
    """What a model is made of and what it learns from."""

    shape: tuple[int, ...]
    dtype: str
    labels: str
    """The type of its labels; share stands for floats with a fraction, which scikit-learn takes for a regression."""
    params: dict[str, Any] = field(default_factory=dict)


def draw_kind(chance: random.Random) -> Kind:
    net = chance.choices(("mlp", "small-cnn", "wrn-10-1"), (90, 9, 1))[0]
    method = chance.choice(("spacenet", "spacenet-density", "static-sparse"))
    other = chance.choice(list(SHARED)) if chance.random() < 0.25 else None
    params: dict[str, Any] = {"method": method, "net": net, "random_state": chance.randrange(1000)}
    params |= {
        "epochs": chance.choice((1, 1, 2)),
        "batch_size": chance.choice((5, 8, 16)),
        "learning_rate": chance.choice((0.01, 0.05, 0.1)),
        "optimizer": chance.choice(("sgd", "sgd", "adam")),
        "phantom_classes": chance.choice((0, 8)),
        "label_smoothing": chance.choice((0.0, 0.0, 0.1)),
        "unused_first": chance.random() < 0.3,
        "expand": "auto" if chance.random() < 0.2 else None,
    }
    if method == "spacenet-density":
        params |= {"directions": chance.choice((2, 4)), "components": chance.choice((1, 2))}
    else:
        params["balance"] = chance.choice(("none", "none", "weights", "logits"))
    shape = _draw_space(chance, net, params)
    if len(shape) > 1:
        params["rotations"] = chance.choice(("none", "none", "first", "all"))
        params["augment"] = chance.choice(("none", "none", "crop-flip"))
    if other is not None:
        general = {"net", "random_state", "epochs", "batch_size", "learning_rate", "optimizer", "augment", "hidden"}
        params = {name: value for name, value in params.items() if name in general}
        params |= {"method": other, "method_settings": SHARED[other]}
    return Kind(shape, chance.choice(DTYPES), chance.choice(LABEL_TYPES), params)


def _draw_space(chance: random.Random, net: str, params: dict[str, Any]) -> tuple[int, ...]:
    """Draw the size of the network and of a task, so that a few tasks fit; returns the shape of a sample."""
    if net == "wrn-10-1":
        params |= {"expected_tasks": 3, "unused_first": True}
        return (1, 8, 8)
    if net == "small-cnn":
        params |= {"hidden": (8, 8, 12), "selected": (4,), "reserved": (1,), "connections": (0.3,)}
        return chance.choice(((8, 8), (1, 8, 8), (2, 8, 8)))
    params["hidden"] = tuple(chance.randint(20, 40) for _ in range(chance.choice((1, 2, 2, 3))))
    if chance.random() < 0.2:
        params["expected_tasks"] = chance.choice((3, 6))  # the rest follows
    else:
        params["selected"] = (chance.choice((0, 10, 12)),)
        params["reserved"] = (chance.randint(2, 4),)
        params["connections"] = (chance.choice((0.05, 0.1)),)
    return chance.choice(((8,), (8,), (8,), (12,), (5, 5)))


def draw_labels(chance: random.Random, kind: str, known: list[Label]) -> list[Label]:
    """One to three new labels of this type; of another one where there are no more."""
    if kind == "bool":
        new = [label for label in (False, True) if not any(label is old for old in known)]
        return [*new] if new else draw_labels(chance, "int", known)
    taken = {str(label).removesuffix(".0") for label in known}
    make = {
        "int": lambda number: number - FREE_INTEGERS // 2,
        "str": lambda number: f"label {number} é",
        "float": lambda number: float(number + FREE_INTEGERS),
        "share": lambda number: number + 0.25,
    }[kind]
    numbers = chance.sample(range(FREE_INTEGERS), 3 + len(known))
    return [label for label in map(make, numbers) if str(label).removesuffix(".0") not in taken][: chance.randint(1, 3)]


def draw_samples(chance: random.Random, kind: Kind, labels: list[Any]) -> tuple[Array, Array]:
    """Samples of these classes, in any order."""
    x, y = blobs(labels, chance.randint(3, 12), kind.shape)
    order = np.random.default_rng(chance.randrange(2**32)).permutation(len(x))
    return as_raw(x[order], kind.dtype), y[order]


def as_raw(x: Array, dtype: str) -> Array:
    """The values in a type; integers in the range of bytes."""
    if np.dtype(dtype).kind == "f":
        return x.astype(dtype)
    return np.asarray((128 + 16 * x).clip(0, 255)).astype(dtype)
