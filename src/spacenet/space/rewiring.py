"""Algorithm 3: drop a task's least important connections, grow as many between its most important units."""

import torch
from torch import Tensor


def drop(importance: Tensor, fraction: float) -> Tensor:
    """Which of the connections go: the given fraction with the smallest importance Ω (equation 4)."""
    return importance.argsort(stable=True)[: int(fraction * len(importance))]


def grow(source_importance: Tensor, target_importance: Tensor, taken: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Where new connections come: the open positions with the largest G = a_source · a_target (equation 6).

    `taken` has one truth value per (target, source). Returns the targets and the sources of the new connections.
    """
    gain = torch.outer(target_importance, source_importance).masked_fill(taken, -1.0)
    place = gain.flatten().argsort(descending=True, stable=True)[:count]
    return place // taken.shape[1], place % taken.shape[1]
