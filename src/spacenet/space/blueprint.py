"""The description of a network, independent of its width.

A *layer* is a set of units (neurons, or feature maps) that share one index space. A *link* says that units of one
layer may be connected to units of another. The full network, a workspace and a pack are the same blueprint with
different units in each layer; `Params` holds their numbers:

    params[link.name]                  the link's weights, (targets, sources, *kernel)
    params["hidden1.bias"]             one number per unit of the layer
    params[link.name + PRECOMPUTED]    optional: what units outside of the cut add to the link's targets, per sample
    params["hidden1" + BATCH_STATS]    only in training: which units use the batch's statistics (batch norm)
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Generator, Tensor

PRECOMPUTED = ".precomputed"
BATCH_STATS = ".batch_stats"
Params = Mapping[str, Tensor]
CPU = torch.device("cpu")
Hook = Callable[[str, Tensor], None]  # called with a link's name and the activations that enter it


@dataclass(frozen=True)
class UnitValue:
    """A number that every unit of a layer has: trained, or a statistic that the forward pass updates."""

    name: str
    initial: float = 0.0
    trained: bool = True
    least: float = -math.inf  # the smallest possible value, e.g. 0 for a variance


@dataclass(frozen=True)
class Layer:
    """Units of one kind. `size` is that of the full network; the output grows with the classes."""

    name: str
    size: int
    unit_values: tuple[UnitValue, ...] = (UnitValue("bias"),)
    group: str = ""
    """Layers of one group share their numbers of selected and reserved units; by default each is its own group."""

    def keys(self) -> dict[str, UnitValue]:
        """The layer's entries in `Params`."""
        return {f"{self.name}.{value.name}": value for value in self.unit_values}


@dataclass(frozen=True)
class Link:
    """Possible connections from `source` to `target`, each with `kernel` weights."""

    name: str
    source: str
    target: str
    kernel: tuple[int, ...] = ()  # (): a scalar; (k, k): a convolution; (p,): from p positions of a map to a neuron
    stride: int = 1

    def initial(self, count: tuple[int, ...], sources: int, targets: int, rng: Generator) -> Tensor:
        """Glorot-uniform weights for `count` connections of a dense layer with this many sources and targets."""
        fan_in, fan_out = sources * math.prod(self.kernel), targets * math.prod(self.kernel)
        if len(self.kernel) == 1:
            fan_out = targets  # the positions are all on the side of the source
        bound = math.sqrt(6 / (fan_in + fan_out))
        return torch.empty(*count, *self.kernel).uniform_(-bound, bound, generator=rng)


class Forward(Protocol):
    """The function that the network computes, at the width of the parameters it is given."""

    def __call__(self, params: Params, x: Tensor, hook: Hook | None = None) -> Tensor: ...


class Derivative(Protocol):
    """Both passes without autograd, with the same bits: in tiny networks its bookkeeping takes much of a step."""

    def forward(self, params: Params, x: Tensor) -> tuple[Tensor, list[Tensor]]:
        """The output, and the activations that `backward` needs."""

    def backward(self, params: Params, activations: list[Tensor], gradient: Tensor, out: Params) -> None:
        """Write the gradient of every trained parameter into `out`; `gradient` is that of the output."""


@dataclass(frozen=True)
class Blueprint:
    """Layers in the order of computation (the input first, the output last), the links, and the function."""

    layers: tuple[Layer, ...]
    links: tuple[Link, ...]
    forward: Forward
    derivative: Derivative | None = None  # without it, autograd computes the gradients

    def unit_values(self) -> dict[str, tuple[Layer, UnitValue]]:
        """All unit values by their names in `Params`."""
        return {key: (layer, value) for layer in self.layers for key, value in layer.keys().items()}

    @property
    def input(self) -> Layer:
        return self.layers[0]

    @property
    def output(self) -> Layer:
        return self.layers[-1]

    @property
    def hidden(self) -> tuple[Layer, ...]:
        return self.layers[1:-1]

    @property
    def classifier(self) -> Link:
        """The link into the output layer."""
        return self.links[-1]

    @property
    def convolves(self) -> bool:
        """Whether some units are feature maps."""
        return any(len(link.kernel) == 2 for link in self.links)
