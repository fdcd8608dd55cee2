"""Rotation labels: images are learned in four orientations, and each class in each orientation is a class of its own.

To distinguish the orientations, a network has to learn shapes that its few classes alone would not require. The outputs
for rotated images only serve training and are dropped when the task ends, unless a method keeps them.

Lee, Hwang, Shin: Self-supervised Label Augmentation via Input Transformations. ICML 2020.
"""

import math

import torch
from torch import Generator, Tensor, nn

from spacenet.errors import SettingsError

ORIENTATIONS = 4


def is_rotatable(shape: tuple[int, ...]) -> bool:
    """Whether samples of this shape are square images."""
    return len(shape) in (2, 3) and shape[-1] == shape[-2]


def check_rotatable(shape: tuple[int, ...]) -> None:
    """Raise `SettingsError` if samples of this shape cannot be rotated."""
    if not is_rotatable(shape):
        raise SettingsError(f"samples of the shape {shape} are not square images", setting="rotations")


def rotate_batch(x: Tensor) -> Tensor:
    """The images, then all of them rotated by 90, 180 and 270 degrees: (4 n, …)."""
    return torch.cat([x, *(x.rot90(turns, (-2, -1)) for turns in range(1, ORIENTATIONS))])


def rotate_targets(target: Tensor, classes: int) -> Tensor:
    """The target columns that go with `rotate_batch`: upright first, then those of each orientation."""
    return torch.cat([target + turns * classes for turns in range(ORIENTATIONS)])


def make_rotated_head(sources: int, classes: int, rng: Generator, device: torch.device) -> nn.Linear:
    """Outputs for the rotated images of a task's classes, on the last hidden layer. Dense, because temporary."""
    head: nn.Linear = nn.utils.skip_init(nn.Linear, sources, (ORIENTATIONS - 1) * classes)
    # The Glorot bound of the whole layer, upright outputs included.
    bound = math.sqrt(6 / (sources + ORIENTATIONS * classes))
    nn.init.uniform_(head.weight, -bound, bound, generator=rng)
    nn.init.zeros_(head.bias)
    return head.to(device)
