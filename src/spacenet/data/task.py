"""One task of a stream, and its samples."""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor


@dataclass(frozen=True)
class Samples:
    """Inputs, normalized, and their class numbers."""

    x: Tensor
    y: Tensor
    augmented: bool = False
    """Whether inputs change from epoch to epoch; otherwise what depends on them alone can be computed once."""

    def to(self, device: torch.device) -> "Samples":
        return Samples(self.x.to(device), self.y.to(device), self.augmented)

    def __len__(self) -> int:
        return len(self.y)


class SampleSource(Protocol):
    """Where the samples of a task come from: a stream, or anything else with this method."""

    def samples(self, task: "Task", *, train: bool) -> Samples: ...


@dataclass(frozen=True)
class Task:
    """One task. Class numbers count up over the stream in the order in which classes appear: 0, 1 | 2, 3 | …"""

    index: int
    labels: tuple[object, ...]
    classes: range
    source: SampleSource

    @cached_property
    def train(self) -> Samples:
        return self.source.samples(self, train=True)

    @cached_property
    def test(self) -> Samples:
        return self.source.samples(self, train=False)
