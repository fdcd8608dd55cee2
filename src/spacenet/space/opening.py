"""Opening a workspace: its units, those outside that feed it, and how its parameters lie in memory."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from spacenet.space.blueprint import CPU, PRECOMPUTED, Blueprint, Link
from spacenet.space.ledger import Connections, Ledger
from spacenet.space.operations import connect
from spacenet.space.pack import Units, block_between, cut, inside, marks, numbers, reach

CHUNK = 2048  # samples that are computed at a time


@dataclass(frozen=True)
class Layout:
    """How parameters lie in memory. The network computes the same function with any layout."""

    multiple: int = 1  # hidden layers are padded to a multiple of this, with units that have no connections
    channels_last: bool = False  # whether the weights of convolutions are stored with their sources last
    alignment: int = 16
    """Weights begin at multiples of this in the vector of all parameters: on a CPU, matrix products round by it."""

    @classmethod
    def for_device(cls, device: torch.device, blueprint: Blueprint) -> "Layout":
        """The fastest layout on a device."""
        if device.type != "cuda":
            return cls()
        return cls(8, channels_last=True, alignment=1) if blueprint.convolves else cls(alignment=1)

    def permutes(self, dimensions: int) -> bool:
        """Whether a weight with this many dimensions is stored with its sources last."""
        return self.channels_last and dimensions == 4


@dataclass
class OpenLink:
    """One link of a workspace: the task's own connections, and where they lie in the block of its weights."""

    link: Link
    shape: tuple[int, int]  # targets, sources
    taken: Tensor  # (targets, sources): owned by an earlier task
    position: Tensor  # (m,) where the task's connections lie in the block
    params: Tensor  # (m, *kernel) their weights; a view of the workspace's own parameters
    importance: Tensor  # (m, *kernel) Ω of equation 4; a view of the workspace's importance
    moved: Tensor  # (m,) whether it was ever dropped and grown elsewhere

    @classmethod
    def open(cls, ledger: Ledger, link: Link, new: Connections, units: Units, sizes: dict[str, int]) -> "OpenLink":
        """The link with the task's new connections, between the units of the workspace."""
        targets, sources = sizes[link.target], sizes[link.source]
        taken = torch.zeros(targets * sources, dtype=torch.bool)
        taken[inside(ledger, link, units, sources)[0]] = True
        target = torch.searchsorted(units[link.target], new.target.long())
        source = torch.searchsorted(units[link.source], new.source.long())
        importance, moved = torch.zeros_like(new.value), torch.zeros(len(new), dtype=torch.bool)
        shape, position = (targets, sources), target * sources + source
        return cls(link, shape, taken.view(shape), position, new.value, importance, moved)

    def ends(self) -> tuple[Tensor, Tensor]:
        """Targets and sources of the task's connections, as places in the block."""
        return self.position // self.shape[1], self.position % self.shape[1]

    def connection_importance(self) -> Tensor:
        """Each connection's importance: a kernel's is the sum over its elements. On the CPU."""
        importance = self.importance.cpu()
        return importance if importance.dim() == 1 else importance.flatten(1).sum(1)

    def places(self, layout: Layout) -> Tensor:
        """Where each number of the task's connections lies in the stored block."""
        elements = math.prod(self.link.kernel)
        element = torch.arange(elements)
        if layout.permutes(len(self.link.kernel) + 2):
            target, source = self.ends()
            return ((target[:, None] * elements + element) * self.shape[1] + source[:, None]).flatten()
        return (self.position[:, None] * elements + element).flatten()


def find_live_units(
    ledger: Ledger,
    selection: Units,
    new: Mapping[str, Connections],
    outputs: Tensor,
    masked_dense: bool,
    fixed: bool,
) -> tuple[Units, Units]:
    """The units that a workspace must hold, and the frozen ones outside that feed them (with the inputs).

    The task's new connections come from selected units, or from frozen ones, which the workspace then holds too.
    """
    blueprint = ledger.blueprint
    inputs = marks(ledger, {blueprint.input.name: torch.arange(ledger.size(blueprint.input.name))})
    if masked_dense:
        everything = {layer.name: torch.arange(ledger.size(layer.name)) for layer in blueprint.layers}
        return everything | {blueprint.output.name: outputs}, numbers(inputs)
    selected = marks(ledger, selection)
    ends = marks(ledger, selection | {blueprint.output.name: outputs})
    for link in blueprint.links:
        ends[link.source] = ends[link.source].index_fill(0, new[link.name].source.long(), True)
    needed = reach(ledger, ends, "source")
    if not fixed:
        return numbers(needed), numbers(inputs)
    changing = reach(ledger, {name: mark & ~inputs[name] for name, mark in selected.items()}, "target")
    live = {name: needed[name] & changing[name] | ends[name] for name in needed}
    frozen = {name: needed[name] & ~live[name] | inputs[name] for name in needed}
    return numbers(live), numbers(frozen)


class FrozenInputs:
    """The frozen units that a workspace leaves out: what they compute depends on the input alone."""

    def __init__(self, ledger: Ledger, frozen: Units, live: Units, device: torch.device = CPU) -> None:
        """`frozen` are the units that are left out and the inputs, `live` those of the workspace."""
        self.forward = ledger.blueprint.forward
        self.params = {name: tensor.to(device) for name, tensor in cut(ledger, frozen).items()}
        self.links = {link.name: link for link in ledger.blueprint.links}
        self.feeds: dict[str, Tensor] = {}  # for each link, its weights from frozen to live units
        for link in ledger.blueprint.links:
            if link.source != ledger.blueprint.input.name:  # the inputs are in the workspace themselves
                feed = block_between(ledger, link, frozen[link.source], live[link.target])
                if bool(feed.any()):
                    self.feeds[link.name] = feed.to(device)

    @torch.no_grad()
    def precompute(self, x: Tensor) -> dict[str, Tensor]:
        """What the frozen units add to each link's targets, for all samples; a batch takes its rows of it."""
        found: dict[str, list[Tensor]] = {link + PRECOMPUTED: [] for link in self.feeds}

        def hook(link: str, h: Tensor) -> None:
            if link in self.feeds:
                found[link + PRECOMPUTED].append(connect(self.feeds, self.links[link], h, None))

        for part in x.split(CHUNK) if self.feeds else ():
            self.forward(self.params, part, hook)
        return {name: torch.cat(parts) for name, parts in found.items()}
