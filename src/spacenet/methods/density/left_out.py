"""Samples of a task that class statistics were computed without: what is usual of new samples is measured on them."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

FOLDS, LEFT_OUT, MOST_OTHERS = 4, 100, 2000
"""A quarter of a class is left out of statistics to see what is usual for it; where that would be fewer samples than
the second, each quarter in turn. Of very many others, so many are enough for these statistics."""
FEW, FEW_FOLDS = 20, 25
"""Of a class with few samples for each of so many folds, one in 25 is left out at a time: a quarter would be missed."""
MOST_LEFT_OUT, MANY = 1000, 4_000_000
"""Samples of a class that are left out at a time, and densities of all classes that are computed of them in a task."""


@dataclass(frozen=True)
class LeftOut:
    """Samples of a task's classes, as statistics see them that were computed without them."""

    rows: Tensor
    """Which of the task's samples, (m,)."""
    y: Tensor
    """Their classes, (m,)."""
    density: Tensor
    """The log-density of each class known so far at them, (m, classes)."""
    likeness: Tensor
    """What `likeness` says of them, (m, classes)."""

    @classmethod
    def concat(cls, parts: Sequence["LeftOut"]) -> "LeftOut":
        each = [(part.rows, part.y, part.density, part.likeness) for part in parts]
        return cls(*(torch.cat(column) for column in zip(*each, strict=True)))
