"""What a network consists of, said once and independent of its width.

A *layer* is a set of units (neurons, or feature maps) that share one index space. A *link* says that units of one
layer may be connected to units of another. The full network, a workspace and a pack are the same blueprint with
different units in each layer; `Params` holds their numbers:

    values[link.name]            the link's weights, (targets, sources, *kernel)
    values["hidden1.bias"]       one number per unit of the layer
    values[link.name + DRIVE]    optional: what units outside of the cut add to the link's targets, per sample
    values["hidden1" + FRESH]    only in training: which units follow the batch's statistics (batch norm)
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Generator, Tensor
from torch.nn import functional as F

PRECOMPUTED = ".drive"
BATCH_STATS = ".fresh"
Params = Mapping[str, Tensor]
CPU = torch.device("cpu")
Hook = Callable[[str, Tensor], None]
"""Called with a link's name and the activations that enter it."""


@dataclass(frozen=True)
class UnitValue:
    """A number that every unit of a layer has: trained, or a statistic that the forward pass keeps up to date."""

    name: str
    initial: float = 0.0
    trained: bool = True
    least: float = -math.inf
    """No value can be smaller; of a variance 0, say."""


@dataclass(frozen=True)
class Layer:
    """Units of one kind. `size` is that of the full network; the output's grows as classes come."""

    name: str
    size: int
    unit_values: tuple[UnitValue, ...] = (UnitValue("bias"),)
    group: str = ""
    """Populations of one group share their numbers of selected and reserved units; by default each is its own."""

    def keys(self) -> dict[str, UnitValue]:
        """The layer's entries in `Params`."""
        return {f"{self.name}.{value.name}": value for value in self.unit_values}


@dataclass(frozen=True)
class Link:
    """Possible connections from `source` to `target`, each of them `kernel` numbers.

    An empty kernel is a scalar, (k, k) a convolution's, and (p,) joins a map's p positions to a unit of a linear layer.
    """

    name: str
    source: str
    target: str
    kernel: tuple[int, ...] = ()
    stride: int = 1

    def initial(self, count: tuple[int, ...], sources: int, targets: int, rng: Generator) -> Tensor:
        """Glorot-uniform values for `count` connections of a dense layer of this many sources and targets."""
        fan_in, fan_out = sources * math.prod(self.kernel), targets * math.prod(self.kernel)
        if len(self.kernel) == 1:
            fan_out = targets  # the positions are all on the side of the source
        bound = math.sqrt(6 / (fan_in + fan_out))
        return torch.empty(*count, *self.kernel).uniform_(-bound, bound, generator=rng)


class Forward(Protocol):
    """The function that the network computes, at the width of the values it is given."""

    def __call__(self, values: Params, x: Tensor, hook: Hook | None = None) -> Tensor: ...


@dataclass(frozen=True)
class Blueprint:
    """Populations in the order of computation (the input first, the output last), the links, and the function."""

    layers: tuple[Layer, ...]
    links: tuple[Link, ...]
    forward: Forward

    @property
    def input(self) -> Layer:
        return self.layers[0]

    @property
    def output(self) -> Layer:
        return self.layers[-1]

    @property
    def classifier(self) -> Link:
        return self.links[-1]

    @property
    def hidden(self) -> tuple[Layer, ...]:
        return self.layers[1:-1]

    @property
    def convolves(self) -> bool:
        """Whether units are feature maps somewhere, each with as many activations as it has positions."""
        return any(len(link.kernel) == 2 for link in self.links)


def as_images(x: Tensor) -> Tensor:
    """(n, c, h, w), also from images without channels."""
    return x if x.dim() == 4 else x.unsqueeze(1)


def connect(values: Params, link: Link, h: Tensor, hook: Hook | None) -> Tensor:
    """Send `h` over a link. Every architecture's forward passes its links through here."""
    if hook is not None:
        hook(link.name, h)
    weight = values[link.name]
    if len(link.kernel) == 2:
        out = F.conv2d(h, weight, stride=link.stride, padding=link.kernel[0] // 2)
    else:
        out = F.linear(h.flatten(1), weight.flatten(1))
    precomputed = values.get(link.name + PRECOMPUTED)
    return out if precomputed is None else out + precomputed
