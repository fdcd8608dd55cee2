"""Cutting a small dense network out of the ledger: which units it must hold, and its parameters.

The pack is everything learned so far as one such network. Unused units are physically gone.
"""

import math
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor

from spacenet.space.blueprint import CPU, Link
from spacenet.space.ledger import Ledger

Units = dict[str, Tensor]  # for each layer, the numbers of some of its units in ascending order
Marks = dict[str, Tensor]  # for each layer, one mark per unit
LARGE, SPARSE = 2**24, 64
"""Weights of a link that are always stored; beyond that, so many for each connection."""


@dataclass(frozen=True)
class Pack:
    """A function that predicts and the parameters it computes with, apart: so both can be moved, exported, measured."""

    forward: Callable[..., Any]
    """(params, x) → one score for each class; that of a plain network also takes a `Hook`. Parts of a predictor take
    and return other tensors, too."""
    params: dict[str, Tensor]
    units: Units = field(default_factory=dict)  # the units that the layers of a plain network hold

    def __call__(self, x: Tensor) -> Tensor:
        """One score for each class seen so far."""
        with torch.inference_mode():
            found: Tensor = self.forward(self.params, x)
            return found


def pack(
    ledger: Ledger,
    device: torch.device = CPU,
    keep_dense: Collection[str] = (),
    ends: Units | None = None,
    more: Units | None = None,
) -> Pack:
    """Pack what the ledger holds, to predict on a device: all tasks' classifiers, and the units that reach them; or
    only the units that reach `ends`, some outputs and, if they are needed too, units of other layers. `more` are units
    that are packed too, whether they reach anything or not.

    Weights of links that `packs_sparsely` names are a sparse tensor, except for links to `keep_dense`.
    """
    units = packed_units(ledger, ends, more)
    size = sizes(ledger, units)
    sparse = [k for k in ledger.blueprint.links if k.name not in keep_dense and packs_sparsely(ledger, k, size)]
    params = cut(ledger, units, size, leave_out=[link.name for link in sparse])
    params |= {link.name: _sparse_block(ledger, link, units, size) for link in sparse}
    return Pack(ledger.blueprint.forward, {name: tensor.to(device) for name, tensor in params.items()}, units)


def packs_sparsely(ledger: Ledger, link: Link, size: Mapping[str, int]) -> bool:
    """Whether a link's weights are so many and most of them so surely zero that only the others are stored. After a
    thousand tasks in a network that grows, a dense matrix between two hidden layers would not fit into memory."""
    weights = size[link.target] * size[link.source]
    return not link.kernel and weights > max(LARGE, SPARSE * len(ledger.connections[link.name]))


def packed_numbers(ledger: Ledger, ends: Units | None = None, more: Units | None = None, *, sparse: bool = True) -> int:
    """How many weights the pack stores, or would store if it were dense."""
    size, total = sizes(ledger, packed_units(ledger, ends, more)), 0
    for link in ledger.blueprint.links:
        dense = size[link.target] * size[link.source] * math.prod(link.kernel)
        total += len(ledger.connections[link.name]) if sparse and packs_sparsely(ledger, link, size) else dense
    return total


def inside(ledger: Ledger, link: Link, units: Units, sources: int | None = None) -> tuple[Tensor, Tensor]:
    """Places in the (targets × sources) block, and values, of the link's connections; `sources` includes padding."""
    return _between(ledger, link, units[link.source], units[link.target], sources)


def _between(
    ledger: Ledger, link: Link, sources: Tensor, targets: Tensor, width: int | None = None
) -> tuple[Tensor, Tensor]:
    connections = ledger.connections[link.name]
    # Targets first: a task's units are few, so most connections of a large network are left out by this alone.
    target = _places(targets, ledger.size(link.target)).index_select(0, connections.target)
    rows = (target >= 0).nonzero().flatten()
    source = _places(sources, ledger.size(link.source)).index_select(0, connections.source[rows])
    here = source >= 0
    rows, source = rows[here], source[here]
    return target[rows].long() * (len(sources) if width is None else width) + source, connections.value[rows]


def places_between(ledger: Ledger, link: Link, sources: Tensor, targets: Tensor) -> Tensor:
    """Places of the link's connections from these units to those in the (targets × sources) block."""
    return _between(ledger, link, sources, targets)[0]


def block_between(ledger: Ledger, link: Link, sources: Tensor, targets: Tensor) -> Tensor:
    """The link's weights from these units to those, dense; also where a layer is linked to itself."""
    place, value = _between(ledger, link, sources, targets)
    weights = torch.zeros(len(targets) * len(sources), *link.kernel).index_copy_(0, place, value)
    return weights.view(len(targets), len(sources), *link.kernel)


def block(ledger: Ledger, link: Link, units: Units, size: Mapping[str, int] | None = None) -> Tensor:
    """The link's weights between units of the cut, dense; zero where there is no connection."""
    size = size or sizes(ledger, units)
    targets, sources = size[link.target], size[link.source]
    place, value = inside(ledger, link, units, sources)
    weights = torch.zeros(targets * sources, *link.kernel).index_copy_(0, place, value)
    return weights.view(targets, sources, *link.kernel)


def _sparse_block(ledger: Ledger, link: Link, units: Units, size: Mapping[str, int]) -> Tensor:
    """The same as a sparse tensor."""
    targets, sources = size[link.target], size[link.source]
    place, value = inside(ledger, link, units, sources)
    place, order = place.sort()
    starts = torch.searchsorted(place, torch.arange(targets + 1) * sources)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse (CSR tensor support|invariant checks)")
        return torch.sparse_csr_tensor(
            starts, place % sources, value[order], (targets, sources), check_invariants=False
        )


def cut(
    ledger: Ledger, units: Units, size: Mapping[str, int] | None = None, leave_out: Collection[str] = ()
) -> dict[str, Tensor]:
    """The parameters of the network that consists of these units and of the connections among them."""
    size = size or sizes(ledger, units)
    links = [link for link in ledger.blueprint.links if link.name not in leave_out]
    params = {link.name: block(ledger, link, units, size) for link in links}
    for key, (layer, value) in ledger.blueprint.unit_values().items():
        padding = size[layer.name] - len(units[layer.name])
        params[key] = torch.cat([ledger.units[key][units[layer.name]], value.start(padding)])
    return params


def sizes(ledger: Ledger, units: Units, multiple: int = 1) -> dict[str, int]:
    """The size of each layer of the cut; hidden ones are padded to a multiple, with units without connections.

    An empty hidden layer is padded too, since convolutions and pooling do not compute with no maps at all.
    """
    hidden = {layer.name for layer in ledger.blueprint.hidden}
    return {
        name: max(1, -(-len(chosen) // multiple)) * multiple if name in hidden else len(chosen)
        for name, chosen in units.items()
    }


def packed_units(ledger: Ledger, ends: Units | None = None, more: Units | None = None) -> Units:
    """The inputs, the outputs (or `ends`), and every unit from which connections lead to these, and `more`; all others
    are not needed."""
    inputs, outputs = ledger.blueprint.input.name, ledger.blueprint.output.name
    start = {outputs: torch.arange(ledger.size(outputs))} if ends is None else ends
    found = reach(ledger, marks(ledger, start | {inputs: torch.arange(ledger.size(inputs))}), "source")
    for name, units in (more or {}).items():
        found[name][units] = True
    return numbers(found)


def reach(ledger: Ledger, start: Marks, towards: Literal["source", "target"]) -> Marks:
    """`start`, and every unit that can be reached from there by going to the source, or target, of connections."""
    near = "target" if towards == "source" else "source"
    marked = {name: mark.clone() for name, mark in start.items()}
    # Links stand in the order of computation. Layers may form a cycle (a residual stream and its branches), so repeat
    # until nothing changes.
    links = ledger.blueprint.links if towards == "target" else ledger.blueprint.links[::-1]
    changed = True
    while changed:
        changed = False
        for link in links:
            connections, far = ledger.connections[link.name], marked[getattr(link, towards)]
            leads_on = marked[getattr(link, near)].index_select(0, getattr(connections, near))
            reached = getattr(connections, towards)[leads_on]
            if not bool(far.index_select(0, reached).all()):
                far[reached.long()] = changed = True
    return marked


def marks(ledger: Ledger, units: Units) -> Marks:
    """The same units as marks; layers that `units` does not name have none."""
    marked = {layer.name: torch.zeros(ledger.size(layer.name), dtype=torch.bool) for layer in ledger.blueprint.layers}
    for name, numbers in units.items():
        marked[name][numbers] = True
    return marked


def numbers(marked: Marks) -> Units:
    return {name: mark.nonzero().flatten() for name, mark in marked.items()}


def _places(units: Tensor, size: int) -> Tensor:
    """For each of a layer's units its place among `units`, or -1. Outputs may be named before they are added."""
    places = torch.full((max([size, *(units[-1:] + 1).tolist()]),), -1, dtype=torch.int32)
    places[units] = torch.arange(len(units), dtype=torch.int32)
    return places
