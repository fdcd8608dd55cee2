"""Why a model gives an answer: how probable and how typical each class is, and which task's part of it answered."""

from itertools import pairwise
from typing import Any

import numpy as np

from spacenet.data.preprocessing import Array
from spacenet.errors import SettingsError
from spacenet.model.model import Model
from spacenet.model.unknown import check_rate


def explain(model: Model, sample: Array, rate: float) -> dict[str, Any]:
    """The answer to one sample, in the form of `messages.Answer`. `rate` is the fraction of samples of known classes
    that may be called unknown."""
    check_rate(rate)
    x = sample[None]
    probabilities = model.predict_proba(x)[0]
    typicality, of_classes = _typicality(model, x)
    classes = [
        {"label": label, "probability": share, "typicality": typical, "task": task}
        for label, share, typical, task in zip(
            model.classes, probabilities.tolist(), of_classes, first_tasks(model), strict=True
        )
    ]
    return {
        "classes": sorted(classes, key=lambda each: -each["probability"]),
        "tasks": _task_shares(model, x),
        "typicality": typicality,
        "rate": rate,
        "unknown": None if typicality is None else typicality < rate,
    }


def _typicality(model: Model, x: Array) -> tuple[float | None, list[float] | list[None]]:
    """Of the class that a sample is most like, and of each class; None for a method that cannot tell."""
    try:
        return float(model.typicality(x)[0]), model.class_typicality(x)[0].tolist()
    except SettingsError:
        return None, [None] * len(model.classes)


def _task_shares(model: Model, x: Array) -> list[float]:
    """The probability of each task: that of its outputs together."""
    each = model.method.logits(model.scores(x)).double().softmax(1)[0].numpy()
    ends = np.cumsum([0, *map(len, model.tasks)])
    return [float(each[first:end].sum()) for first, end in pairwise(ends)]


def first_tasks(model: Model) -> list[int]:
    """For each class the number of the task, from 1, in which it was learned first."""
    numbers: dict[Any, int] = {}
    for number, labels in enumerate(model.tasks, 1):
        for label in labels:
            numbers.setdefault(label, number)
    return [numbers[label] for label in model.classes]
