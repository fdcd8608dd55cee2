"""Dropping what no output reads: connections that lead nowhere, units reserved for them, and added units without use.

What is packed to predict holds none of it, so predictions keep their bits.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from spacenet.space.ledger import FREE, Ledger
from spacenet.space.pack import Units, marks, reach


def drop_unread(ledger: Ledger, ends: Units) -> None:
    """Remove connections that lead to none of these units, and make reserved units free that do not either."""
    needed = reach(ledger, marks(ledger, ends), "source")
    for link in ledger.blueprint.links:
        held = ledger.connections[link.name]
        ledger.connections[link.name] = held[needed[link.target][held.target.long()]]
    for layer in ledger.blueprint.hidden:
        state = ledger.state[layer.name]
        state[(state != FREE) & ~needed[layer.name]] = FREE


def shrink_layers(ledger: Ledger, least: Mapping[str, int]) -> dict[str, Tensor]:
    """Remove free units without connections that were added to a hidden layer, from the number `least` on.

    Returns for each layer that has become smaller the new number of each unit; those removed have -1.
    """
    moved = {}
    for layer in ledger.blueprint.hidden:
        name, keys = layer.name, layer.keys()
        stays = ledger.used(name) | (ledger.state[name] != FREE)
        stays[: least[name]] = True
        if bool(stays.all()):
            continue
        places = torch.where(stays, stays.cumsum(0) - 1, -1)
        for link in ledger.blueprint.links:
            held = ledger.connections[link.name]
            for end in ("source", "target"):
                if getattr(link, end) == name:
                    numbers = getattr(held, end)
                    setattr(held, end, places[numbers.long()].to(numbers.dtype))
        ledger.state[name] = ledger.state[name][stays]
        for key in keys:
            ledger.units[key] = ledger.units[key][stays]
        moved[name] = places
    return moved
