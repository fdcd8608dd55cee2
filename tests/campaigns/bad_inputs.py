"""Inputs, labels and settings that a model must refuse."""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from spacenet.data.preprocessing import Array
from spacenet.model.labels import Label
from spacenet.model.model import Model

Task = tuple[Array, Array]


def _with_value(value: float) -> Callable[[Task, random.Random], Task]:
    def change(task: Task, chance: random.Random) -> Task:
        x = task[0].astype(np.float64)
        x.reshape(-1)[chance.randrange(x.size)] = value
        return x, task[1]

    return change


BAD_INPUTS: dict[str, Callable[[Task, random.Random], Task]] = {
    "NaN": _with_value(np.nan),
    "infinite": _with_value(-np.inf),
    "too large": _with_value(1e30),
    "too large below 0": _with_value(-1e30),
    "a feature too many": lambda task, _: (np.concatenate([task[0], task[0][..., :1]], axis=-1), task[1]),
    "an axis too many": lambda task, _: (task[0][..., None], task[1]),
    "one sample without its axis": lambda task, _: (task[0][0], task[1][:1]),
    "one number": lambda task, _: (np.array(1.5), task[1][:1]),
    "texts": lambda task, _: (task[0].astype(str), task[1]),
    "complex": lambda task, _: (task[0] * 1j, task[1]),
    "times": lambda task, _: (task[0].astype(np.int64).astype("M8[s]"), task[1]),
    "objects": lambda task, _: (np.full(task[0].shape, None), task[1]),
}
"""Wrong both to learn from and to predict; only the inputs matter to the latter."""
OTHER_SHAPES = ("a feature too many", "an axis too many")
"""Of these inputs, those that a new model could learn from."""
BAD_LABELS: dict[str, Callable[[Task, random.Random], Task]] = {
    "nothing": lambda task, _: (task[0][:0], task[1][:0]),
    "a label too few": lambda task, _: (task[0], task[1][:-1]),
    "labels in rows": lambda task, _: (task[0], np.stack([task[1], task[1]], axis=1)),
    "one label for all": lambda task, _: (task[0], task[1][0]),
    "labels that are NaN": lambda task, _: (task[0], np.full(len(task[1]), np.nan)),
    "infinite labels": lambda task, _: (task[0], np.full(len(task[1]), np.inf)),
    "labels of two types": lambda task, _: (task[0], np.array([1, *["a"] * (len(task[1]) - 1)], object)),
    "labels that are None": lambda task, _: (task[0], np.full(len(task[1]), None)),
    "complex labels": lambda task, _: (task[0], np.full(len(task[1]), 1j)),
    "long labels": lambda task, _: (task[0], np.full(len(task[1]), "x" * 1001)),
    "labels that are no text": lambda task, _: (task[0], np.full(len(task[1]), "a\ud800")),
    "labels with a zero": lambda task, _: (task[0], np.full(len(task[1]), "a\0b")),
    "bytes that are no text": lambda task, _: (task[0], np.full(len(task[1]), b"\xff\xfe")),
}


def of_another_type(known: list[Label], count: int) -> Array | None:
    """Labels that look like a known one and are of another type; None where no known one has such a twin."""
    for label in known:
        if isinstance(label, (int, float)) and not isinstance(label, bool) and float(label).is_integer():
            return np.full(count, str(int(label)))
        if isinstance(label, bool):
            return np.full(count, str(label))
    return None


CHANGES: dict[str, Any] = {"centering": 0.25, "first_epochs": 7, "scale": 2.0, "std": 5.0}
"""Settings that cannot change after the first task."""


def learn_with_another_setting(model: Model, task: Task, chance: random.Random) -> None:
    name = chance.choice(("seed", *CHANGES))
    if name == "seed":
        model.learn(*task, config=replace(model.config, seed=model.config.seed + 1))
    else:
        model.learn(*task, config=model.config.replace(**{name: CHANGES[name]}))
