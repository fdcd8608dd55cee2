"""The description of a network, independent of its width.

A *layer* is a set of units (neurons, or feature maps) that share one index space. A *link* says that units of one
layer may be connected to units of another. The full network, a workspace and a pack are the same blueprint with
different units in each layer; `Params` holds their numbers:

    params[link.name]                  the link's weights, (targets, sources, *kernel)
    params["hidden1.bias"]             one number, or several, per unit of the layer
    params[link.name + PRECOMPUTED]    optional: what units outside of the cut add to the link's targets, per sample
    params["hidden1" + BATCH_STATS]    only in training: which units use the batch's statistics (batch norm)
    params[TRAINING]                   only in training, where there is dropout
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

import torch
from torch import Generator, Tensor

PRECOMPUTED = ".precomputed"
BATCH_STATS = ".batch_stats"
TRAINING = ".training"
Params = Mapping[str, Tensor]
CPU = torch.device("cpu")
Hook = Callable[[str, Tensor], None]  # called with a link's name and the activations that enter it


@dataclass(frozen=True)
class Init:
    """The distribution of initial weights: Glorot-uniform for the width of the network, or one of a fixed size."""

    kind: Literal["glorot", "uniform", "normal"] = "glorot"
    size: float = 0.0
    """The bound of a uniform distribution, the standard deviation of a normal one."""

    def draw(self, shape: tuple[int, ...], fans: int, rng: Generator) -> Tensor:
        """Random numbers; `fans` is the sum of inputs and outputs of a dense layer, for Glorot's bound."""
        empty = torch.empty(shape)
        if self.kind == "normal":
            return empty.normal_(0.0, self.size, generator=rng)
        bound = self.size if self.kind == "uniform" else math.sqrt(6 / fans)
        return empty.uniform_(-bound, bound, generator=rng)


GLOROT = Init()


@dataclass(frozen=True)
class UnitValue:
    """Numbers that every unit of a layer has: trained, or statistics that the forward pass updates."""

    name: str
    initial: float = 0.0
    trained: bool = True
    least: float = -math.inf  # the smallest possible value, e.g. 0 for a variance
    shape: tuple[int, ...] = ()  # of one unit's numbers: (3, 3) for the kernel of a depthwise convolution
    init: Init | None = None  # random initial values instead of `initial`

    def start(self, count: int, rng: Generator | None = None) -> Tensor:
        """The values of `count` new units."""
        shape = (count, *self.shape)
        if self.init is None or rng is None:
            return torch.full(shape, self.initial)
        return self.init.draw(shape, 2 * math.prod(self.shape), rng)


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
    kernel: tuple[int, ...] = ()
    """The shape of one connection's weights: features of the target unit and of the source unit, where a unit has
    several (`each`), then the kernel of a convolution."""
    stride: tuple[int, ...] = ()  # of a convolution, like the following ones; () stands for a linear layer
    padding: tuple[int, ...] = ()
    dilation: tuple[int, ...] = ()
    each: tuple[int, int] = (1, 1)
    """Features of a target unit and of a source unit: a map that is flattened has one for each position."""
    init: Init = GLOROT

    @property
    def convolves(self) -> bool:
        return bool(self.stride)

    def initial(self, count: tuple[int, ...], sources: int, targets: int, rng: Generator) -> Tensor:
        """Weights for `count` connections of a dense layer with this many sources and targets."""
        area = math.prod(self.kernel) // (self.each[0] * self.each[1])
        fans = area * (sources * self.each[1] + targets * self.each[0])
        return self.init.draw((*count, *self.kernel), fans, rng)


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
    drops: bool = False  # whether there is dropout

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
    def classifiers(self) -> tuple[Link, ...]:
        """The links into the output layer: several where features of several layers are concatenated."""
        return tuple(link for link in self.links if link.target == self.output.name)

    def features(self, entering: Mapping[str, Tensor]) -> Tensor:
        """The inputs of the classifier, (n, d), from what a hook was called with."""
        parts = [entering[link.name].flatten(1) for link in self.classifiers]
        return parts[0] if len(parts) == 1 else torch.cat(parts, 1)

    @property
    def convolves(self) -> bool:
        """Whether some units are feature maps."""
        return any(link.convolves for link in self.links)
