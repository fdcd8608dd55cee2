"""The network as it stood after a task: later tasks add connections and change the values of units that nobody has
reserved, but what is looked at through a view never changes again."""

from collections.abc import Mapping

import torch
from torch import Tensor

from spacenet.space.ledger import FREE, Ledger


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
