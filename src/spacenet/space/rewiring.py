"""Algorithms 3 and 4: move a task's least important connections, and at its end reserve its most important units."""

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from spacenet.space.ledger import Ledger
from spacenet.space.pack import Units


def rank(values: Tensor, count: int, descending: bool = False) -> Tensor:
    """`values.argsort(descending, stable=True)[:count]` of a vector on the CPU, without sorting the rest."""
    if not 0 < count < len(values):
        return values.argsort(descending=descending, stable=True)[:count]
    position = len(values) - count if descending else count - 1
    limit = float(np.partition(values.numpy(), position)[position])
    # "Not beyond the limit" and not "up to it": a NaN, which compares with nothing, must stay.
    candidates = (~(values < limit) if descending else ~(values > limit)).nonzero().flatten()
    return candidates[values[candidates].argsort(descending=descending, stable=True)[:count]]


def drop(importance: Tensor, fraction: float) -> Tensor:
    """Which connections to drop: the given fraction with the smallest importance Ω (equation 4)."""
    return rank(importance, int(fraction * len(importance)))


def grow(source_importance: Tensor, target_importance: Tensor, taken: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Targets and sources of new connections: the open positions with the largest a_source · a_target (equation 6)."""
    gain = torch.outer(target_importance, source_importance).masked_fill(taken, -1.0)
    place = rank(gain.flatten(), count, descending=True)
    return place // taken.shape[1], place % taken.shape[1]


def reserve(
    ledger: Ledger, task: int, selection: Units, importance: Mapping[str, Tensor], count: Mapping[str, int]
) -> None:
    """Reserve this many of the selected units in each layer, those of most importance (equation 5)."""
    for layer, wanted in count.items():
        best = importance[layer].argsort(descending=True, stable=True)[:wanted]
        ledger.reserve(layer, selection[layer][best].sort().values, task)
