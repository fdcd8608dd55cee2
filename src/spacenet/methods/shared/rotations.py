"""Rotation labels: each image is learned in four positions, each class in each position as a class of its own.

Telling the positions apart makes a network look at shapes that its few classes alone would not need. The outputs for
turned images are a help in training only: they are thrown away when the task ends.

Lee, Hwang, Shin: Self-supervised Label Augmentation via Input Transformations. ICML 2020.
"""

import math
from collections.abc import Mapping

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from spacenet.errors import SettingsError

TURNS = 4


def check_turns(shape: tuple[int, ...]) -> None:
    """Raise `SettingsError` if samples of this shape cannot be turned."""
    if len(shape) not in (2, 3) or shape[-1] != shape[-2]:
        raise SettingsError(f"rotations: only square images can be turned, and samples have the shape {shape}")


def turned(x: Tensor) -> Tensor:
    """The images, then all of them turned by 90, 180 and 270 degrees: (4 n, …)."""
    return torch.cat([x, *(x.rot90(turn, (-2, -1)) for turn in range(1, TURNS))])


def turned_target(target: Tensor, classes: int) -> Tensor:
    """The columns of the right classes of what `turned` gave: upright, then each position's own."""
    return torch.cat([target + turn * classes for turn in range(TURNS)])


class TurnedOutputs:
    """Outputs for the turned images of a task's classes, on the last hidden layer; dense, for they do not stay."""

    def __init__(self, sources: int, classes: int, rng: Generator, device: torch.device) -> None:
        bound = math.sqrt(6 / (sources + TURNS * classes))
        weight = torch.empty((TURNS - 1) * classes, sources).uniform_(-bound, bound, generator=rng)
        self.weight = nn.Parameter(weight.to(device))
        self.bias = nn.Parameter(torch.zeros(len(weight), device=device))

    def parameters(self) -> list[nn.Parameter]:
        return [self.weight, self.bias]

    def __call__(self, h: Tensor) -> Tensor:
        return F.linear(h, self.weight, self.bias)

    def tensors(self) -> dict[str, Tensor]:
        """What a checkpoint needs."""
        return {"turned/weight": self.weight.detach().cpu(), "turned/bias": self.bias.detach().cpu()}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Take back what `tensors` gave."""
        self.weight.data.copy_(tensors["turned/weight"])
        self.bias.data.copy_(tensors["turned/bias"])
