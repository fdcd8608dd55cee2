"""Cutting a small dense network out of the ledger, and finding which units it must hold."""

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn import functional as F

from spacenet.space.blueprint import Link
from spacenet.space.ledger import Ledger

Units = dict[str, Tensor]  # for each layer, the numbers of some of its units in ascending order
Marks = dict[str, Tensor]  # for each layer, one mark per unit


def inside(ledger: Ledger, link: Link, units: Units, sources: int | None = None) -> tuple[Tensor, Tensor]:
    """Places in the (targets × sources) block, and values, of the link's connections; `sources` includes padding."""
    connections = ledger.connections[link.name]
    source = _places(units[link.source], ledger.size(link.source))[connections.source.long()]
    target = _places(units[link.target], ledger.size(link.target))[connections.target.long()]
    here = (source >= 0) & (target >= 0)
    stride = len(units[link.source]) if sources is None else sources
    return target[here] * stride + source[here], connections.value[here]


def block(ledger: Ledger, link: Link, units: Units, size: Mapping[str, int] | None = None) -> Tensor:
    """The link's weights between units of the cut, dense; zero where there is no connection."""
    size = size or sizes(ledger, units)
    targets, sources = size[link.target], size[link.source]
    place, value = inside(ledger, link, units, sources)
    weights = torch.zeros(targets * sources, *link.kernel).index_copy_(0, place, value)
    return weights.view(targets, sources, *link.kernel)


def cut(ledger: Ledger, units: Units) -> dict[str, Tensor]:
    """The parameters of the network that consists of these units and of the connections among them."""
    size = sizes(ledger, units)
    params = {link.name: block(ledger, link, units, size) for link in ledger.blueprint.links}
    for key, (layer, value) in ledger.blueprint.unit_values().items():
        padding = size[layer.name] - len(units[layer.name])
        params[key] = F.pad(ledger.units[key][units[layer.name]], (0, padding), value=value.initial)
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


def upstream(ledger: Ledger, start: Marks) -> Marks:
    """`start`, and every unit from which connections lead there."""
    return _reach(ledger, start, towards_input=True)


def downstream(ledger: Ledger, start: Marks) -> Marks:
    """`start`, and every unit to which connections lead from there."""
    return _reach(ledger, start, towards_input=False)


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
    places = torch.full((max([size, *(units[-1:] + 1).tolist()]),), -1)
    places[units] = torch.arange(len(units))
    return places


def _reach(ledger: Ledger, start: Marks, towards_input: bool) -> Marks:
    # Layers may form a cycle (a residual stream and its branches), so repeat until nothing changes.
    marked = {name: mark.clone() for name, mark in start.items()}
    changed = True
    while changed:
        changed = False
        for link in ledger.blueprint.links:
            connections = ledger.connections[link.name]
            ends = (link.target, connections.target.long()), (link.source, connections.source.long())
            (near, near_units), (far, far_units) = ends if towards_input else ends[::-1]
            reached = far_units[marked[near][near_units]]
            if not bool(marked[far][reached].all()):
                marked[far][reached] = changed = True
    return marked
