"""The network as it was after a task: what later tasks add or change is not in it."""

from collections.abc import Mapping

import torch
from torch import Tensor

from spacenet.space.ledger import FREE, Ledger
from spacenet.utils.tensors import check_finite, check_shapes

WHAT = "the first view of the network"


def unit_values(ledger: Ledger) -> dict[str, Tensor]:
    """What a view keeps: a copy of the values of all units. Connections have owners and never change."""
    return {key: values.clone() for key, values in ledger.units.items()}


def as_of(ledger: Ledger, tasks: int, units: Mapping[str, Tensor]) -> Ledger:
    """The ledger as it was after this many tasks; `units` is what `unit_values` returned then."""
    view = Ledger(ledger.blueprint)
    for key, (layer, _) in ledger.blueprint.unit_values().items():
        view.units[key] = units[key].clone()
        view.state[layer.name] = torch.full((len(units[key]),), FREE, dtype=torch.int16)
    view.connections = {name: held[held.owner < tasks] for name, held in ledger.connections.items()}
    return view


def check_unit_values(ledger: Ledger, tasks: int, classes: int, units: Mapping[str, Tensor]) -> None:
    """Raise `ValueError` if `unit_values` cannot have returned this after this many tasks and classes."""
    blueprint = ledger.blueprint
    lengths = {blueprint.input.name: blueprint.input.size, blueprint.output.name: classes}
    for layer in blueprint.hidden:
        lengths[layer.name] = next((units[key].numel() for key in layer.keys() if key in units), 0)
        if not layer.size <= lengths[layer.name] <= ledger.size(layer.name):
            raise ValueError(f"{WHAT}: {layer.name} cannot have had {lengths[layer.name]} units")
    values = blueprint.unit_values().items()
    check_shapes(units, {key: (lengths[layer.name],) for key, (layer, _) in values}, WHAT)
    check_finite(units, {key: value.least for key, (_, value) in values}, WHAT)
    for link in blueprint.links:
        held = ledger.connections[link.name]
        seen = held[held.owner < tasks]
        if bool((seen.source >= lengths[link.source]).any() | (seen.target >= lengths[link.target]).any()):
            raise ValueError(f"{WHAT}: {link.name} has a connection of a unit that did not exist yet")
