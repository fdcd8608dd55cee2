"""The network as it stood after a task: later tasks add connections and change the values of units that nobody has
reserved, but what is looked at through a view never changes again."""

from collections.abc import Mapping

import torch
from torch import Tensor

from spacenet.space.ledger import FREE, Ledger
from spacenet.utils.tensors import check_finite, check_shapes

WHAT = "the first view of the network"


def unit_values(ledger: Ledger) -> dict[str, Tensor]:
    """What a view needs to keep: the values of all units. Connections have owners and never change by themselves."""
    return {key: values.clone() for key, values in ledger.units.items()}


def as_of(ledger: Ledger, tasks: int, units: Mapping[str, Tensor]) -> Ledger:
    """The ledger as it was after so many tasks; `units` is what `unit_values` gave then."""
    view = Ledger(ledger.blueprint)
    for population in ledger.blueprint.populations:
        for key in population.keys():
            view.units[key] = units[key].clone()
            view.state[population.name] = torch.full((len(units[key]),), FREE, dtype=torch.int16)
    view.connections = {name: held[held.owner < tasks] for name, held in ledger.connections.items()}
    return view


def check_unit_values(ledger: Ledger, tasks: int, classes: int, units: Mapping[str, Tensor]) -> None:
    """Raise `ValueError` if `unit_values` could not have given this after so many tasks of so many classes."""
    blueprint = ledger.blueprint
    lengths = {blueprint.input.name: blueprint.input.size, blueprint.output.name: classes}
    for population in blueprint.hidden:
        lengths[population.name] = next((units[key].numel() for key in population.keys() if key in units), 0)
        if not population.size <= lengths[population.name] <= ledger.size(population.name):
            raise ValueError(f"{WHAT}: {population.name} cannot have had so many units")
    least = {key: kind.least for population in blueprint.populations for key, kind in population.keys().items()}
    shapes = {key: (lengths[population.name],) for population in blueprint.populations for key in population.keys()}
    check_shapes(units, shapes, WHAT)
    check_finite(units, least, WHAT)
    for link in blueprint.links:
        held = ledger.connections[link.name]
        seen = held[held.owner < tasks]
        if bool((seen.source >= lengths[link.source]).any() | (seen.target >= lengths[link.target]).any()):
            raise ValueError(f"{WHAT}: {link.name} has a connection of a unit that was not there yet")
