"""Algorithm 3: drop a task's least important connections, grow as many between its most important units."""

import torch
from torch import Tensor

from spacenet.space.ranking import largest, smallest


def drop(importance: Tensor, fraction: float) -> Tensor:
    """Which connections to drop: the given fraction with the smallest importance Ω (equation 4)."""
    return smallest(importance, int(fraction * len(importance)))


def grow(source_importance: Tensor, target_importance: Tensor, taken: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Where to put new connections: the open positions with the largest G = a_source · a_target (equation 6).

    `taken` marks (target, source) positions. Returns the targets and the sources of the new connections.
    """
    gain = torch.outer(target_importance, source_importance).masked_fill(taken, -1.0)
    place = largest(gain.flatten(), count)
    return place // taken.shape[1], place % taken.shape[1]
