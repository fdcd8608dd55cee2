"""What a network consists of, said once and independent of its width.

A *population* is a set of units (neurons, or feature maps) that share one index space. A *link* says that units of one
population may be connected to units of another. The full network, a workspace and a pack are the same blueprint with
different units in each population; `Values` holds their numbers:

    values[link.name]            the link's weights, (targets, sources, *kernel)
    values["hidden1.bias"]       one number per unit of the population
    values[link.name + DRIVE]    optional: what units outside of the cut add to the link's targets, per sample
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Generator, Tensor
from torch.nn import functional as F

DRIVE = ".drive"
Values = Mapping[str, Tensor]
Tap = Callable[[str, Tensor], None]
"""Called with a link's name and the activations that enter it."""


@dataclass(frozen=True)
class Population:
    """Units of one kind. `size` is that of the full network; the output's grows as classes come."""

    name: str
    size: int
    unit_values: tuple[str, ...] = ("bias",)

    def keys(self) -> tuple[str, ...]:
        """The names of this population's entries in `Values`."""
        return tuple(f"{self.name}.{value}" for value in self.unit_values)


@dataclass(frozen=True)
class Link:
    """Possible connections from `source` to `target`; one connection holds `kernel` numbers (a scalar if empty)."""

    name: str
    source: str
    target: str
    kernel: tuple[int, ...] = ()

    def initial(self, count: tuple[int, ...], sources: int, targets: int, rng: Generator) -> Tensor:
        """Glorot-uniform values for `count` connections of a dense layer of this many sources and targets."""
        bound = math.sqrt(6 / ((sources + targets) * math.prod(self.kernel)))
        return torch.empty(*count, *self.kernel).uniform_(-bound, bound, generator=rng)


class Forward(Protocol):
    """The function that the network computes, at the width of the values it is given."""

    def __call__(self, values: Values, x: Tensor, tap: Tap | None = None) -> Tensor: ...


@dataclass(frozen=True)
class Blueprint:
    """Populations in the order of computation (the input first, the output last), the links, and the function."""

    populations: tuple[Population, ...]
    links: tuple[Link, ...]
    forward: Forward

    @property
    def input(self) -> Population:
        return self.populations[0]

    @property
    def output(self) -> Population:
        return self.populations[-1]

    @property
    def hidden(self) -> tuple[Population, ...]:
        return self.populations[1:-1]


def connect(values: Values, link: str, h: Tensor, tap: Tap | None) -> Tensor:
    """Send `h` over a link of scalar connections. Every architecture's forward passes its links through here."""
    if tap is not None:
        tap(link, h)
    out = F.linear(h, values[link])
    drive = values.get(link + DRIVE)
    return out if drive is None else out + drive
