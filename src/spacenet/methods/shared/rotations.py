"""Rotation labels: images are learned in four orientations, and each class in each orientation is a class of its own.

To distinguish the orientations, a network has to learn shapes that its few classes alone would not require. The outputs
for rotated images only serve training; they are dropped when the task ends.

Lee, Hwang, Shin: Self-supervised Label Augmentation via Input Transformations. ICML 2020.
"""

import math

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from spacenet.errors import SettingsError

ORIENTATIONS = 4


def check_rotatable(shape: tuple[int, ...]) -> None:
    """Raise `SettingsError` if samples of this shape cannot be rotated."""
    if len(shape) not in (2, 3) or shape[-1] != shape[-2]:
        raise SettingsError(f"samples of the shape {shape} are not square images", setting="rotations")


def rotate_batch(x: Tensor) -> Tensor:
    """The images, then all of them rotated by 90, 180 and 270 degrees: (4 n, …)."""
    return torch.cat([x, *(x.rot90(turns, (-2, -1)) for turns in range(1, ORIENTATIONS))])


def rotate_targets(target: Tensor, classes: int) -> Tensor:
    """The target columns that go with `rotate_batch`: upright first, then those of each orientation."""
    return torch.cat([target + turns * classes for turns in range(ORIENTATIONS)])


class RotatedHead(nn.Module):
    """Outputs for the rotated images of a task's classes, on the last hidden layer. Dense, because temporary."""

    def __init__(self, sources: int, classes: int, rng: Generator, device: torch.device) -> None:
        super().__init__()
        # The Glorot bound of the whole layer, upright outputs included.
        bound = math.sqrt(6 / (sources + ORIENTATIONS * classes))
        weight = torch.empty((ORIENTATIONS - 1) * classes, sources).uniform_(-bound, bound, generator=rng)
        self.weight = nn.Parameter(weight.to(device))
        self.bias = nn.Parameter(torch.zeros(len(weight), device=device))

    def forward(self, h: Tensor) -> Tensor:
        return F.linear(h, self.weight, self.bias)
