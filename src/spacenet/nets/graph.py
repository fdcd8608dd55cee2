"""A network as data: the operations that a module computes, one after the other, with the names of its parameters.

A graph knows no widths but those of the layers that it names, so that it describes the network at any width; it can be
kept in a file. `spacenet.nets.trace` makes one from a module, `spacenet.nets.populations` makes a blueprint of it.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from spacenet.config.settings import from_plain
from spacenet.errors import SettingsError
from spacenet.space.blueprint import Init

MAX_NODES = 10_000
Number = bool | int | float | str | None
Argument = Number | list[int]

FUNCTIONS: dict[str, Callable[..., Tensor]] = {
    # Each number depends on the number at the same place alone …
    **{name: getattr(torch, name) for name in ("relu", "sigmoid", "tanh", "neg", "abs", "exp", "sqrt", "clamp")},
    **{name: getattr(F, name) for name in ("hardswish", "hardsigmoid", "leaky_relu", "silu", "mish", "softplus")},
    "celu": F.celu,
    "gelu": lambda h, approximate="none": F.gelu(h, approximate=approximate),
    "elu": torch.ops.aten.elu.default,
    "hardtanh": lambda h, least=-1.0, most=1.0: F.hardtanh(h, least, most),
    "threshold": F.threshold,
    "rsub": lambda h, other, alpha=1: other - alpha * h,
    "plus": torch.add,
    "times": torch.mul,
    "minus": torch.sub,
    "over": torch.div,
    "power": torch.pow,
    # … or on those at other positions of the same map.
    "max_pool2d": F.max_pool2d,
    "avg_pool2d": F.avg_pool2d,
    "adaptive_avg_pool2d": F.adaptive_avg_pool2d,
    "adaptive_max_pool2d": F.adaptive_max_pool2d,
    "pad": F.pad,
    "mean": lambda h, dims, keepdim=False: h.mean(dims, keepdim=keepdim),
    "amax": lambda h, dims, keepdim=False: h.amax(dims, keepdim=keepdim),
}
"""What is computed for each unit by itself, with arguments that are numbers."""


@dataclass(frozen=True)
class Node:
    """One operation on the results of earlier ones."""

    op: str
    """input, linear, conv, batch_norm, group_norm, add, mul, sub, div, cat, flatten, reshape, scale, shift, dropout, or
    one of `FUNCTIONS`."""
    inputs: list[int] = field(default_factory=list)
    """The numbers of the nodes that it computes with."""
    name: str = ""
    """The path of the module, or parameter, in the traced module."""
    args: list[Argument] = field(default_factory=list)
    """Of one of `FUNCTIONS`; of others: the shape (input, reshape), the positions (flatten), groups and eps
    (group_norm), eps and momentum (batch_norm), the shape of one unit's numbers (scale, shift), the probability and
    whether whole maps are dropped (dropout)."""
    out: int = 0
    """Units of a linear layer or a convolution."""
    bias: bool = False
    kernel: list[int] = field(default_factory=list)
    stride: list[int] = field(default_factory=list)
    padding: list[int] = field(default_factory=list)
    dilation: list[int] = field(default_factory=list)
    groups: int = 1
    init: Init = Init()  # noqa: RUF009 (frozen)


@dataclass(frozen=True)
class Graph:
    """A network's operations; the first is the input, the last the classifier."""

    nodes: tuple[Node, ...]

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape in which the network sees a sample: its channels, then positions."""
        return tuple(self.nodes[0].args)  # type: ignore[arg-type]

    def to_text(self) -> str:
        plain, empty = [asdict(node) for node in self.nodes], asdict(Node(""))
        short = [{key: value for key, value in node.items() if value != empty[key]} for node in plain]
        return json.dumps(short, separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str) -> "Graph":
        """Read what `to_text` wrote; what it cannot have written is a `SettingsError`."""
        try:
            plain = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise SettingsError(f"the network's graph cannot be read ({error})", setting="graph") from error
        if not isinstance(plain, list) or not 0 < len(plain) <= MAX_NODES:
            raise SettingsError(f"the network's graph is not a list of 1 to {MAX_NODES} operations", setting="graph")
        return cls(tuple(from_plain(Node, node, f"operation {number}") for number, node in enumerate(plain)))


NormKind = Literal["batch_norm", "group_norm"]


def unsupported(what: str, remedy: str = "") -> SettingsError:
    """Why a network cannot divide its units among tasks."""
    return SettingsError(f"{what}. {remedy}".rstrip(), setting="net")
