"""Removing outputs from the ledger, and giving back the space of a task that has none left.

All other numbers stay as they are, so what the remaining outputs compute does not change.
"""

import copy
from collections.abc import Sequence

import torch
from torch import Generator, Tensor

from spacenet.space.ledger import FREE, Connections, Ledger
from spacenet.space.pack import Units, marks, reach


def remove_outputs(ledger: Ledger, outputs: Tensor, keep_sources_of: Sequence[range] = ()) -> None:
    """Remove these outputs with the connections into them; the others move up.

    Where the only connections from a unit to outputs of one of the ranges `keep_sources_of` are removed, it gets one of
    weight 0 to the first of them that stays, so that it still belongs to the network that leads to these outputs.
    """
    name, size = ledger.blueprint.output.name, len(ledger.state[ledger.blueprint.output.name])
    stays = torch.ones(size, dtype=torch.bool)
    stays[outputs] = False
    number = stays.cumsum(0) - 1
    for link in ledger.blueprint.classifiers:
        held = ledger.connections[link.name]
        for own in (each for each in keep_sources_of if bool(stays[each.start : each.stop].any())):
            held = Connections.concat(held, _stand_ins(held, own, stays))
        held = held[stays[held.target.long()]]
        held.target = number[held.target.long()].to(held.target.dtype)
        ledger.connections[link.name] = held
    ledger.state[name] = ledger.state[name][stays]
    for key in ledger.blueprint.output.keys():
        ledger.units[key] = ledger.units[key][stays]


def place_outputs(ledger: Ledger, places: Tensor) -> Ledger:
    """The same network with its outputs at other places: for each place an output, in ascending order, or -1 for one
    without connections."""
    view, name = copy.copy(ledger), ledger.blueprint.output.name
    taken = (places >= 0).nonzero().flatten()
    view.connections = {
        **ledger.connections,
        **{
            link.name: Connections(held.source, taken[held.target.long()].to(held.target.dtype), held.owner, held.value)
            for link in ledger.blueprint.classifiers
            for held in [ledger.connections[link.name]]
        },
    }
    view.state = {**ledger.state, name: torch.full((len(places),), FREE, dtype=torch.int16)}
    values = {key: value.start(len(places)) for key, value in ledger.blueprint.output.keys().items()}
    view.units = ledger.units | {key: held.index_copy(0, taken, ledger.units[key]) for key, held in values.items()}
    return view


def _stand_ins(held: Connections, outputs: range, stays: Tensor) -> Connections:
    """Connections of weight 0 for units that would lose all connections to these outputs, some of which stay."""
    target, source = held.target.long(), held.source.long()
    own = torch.zeros_like(stays)
    own[outputs.start : outputs.stop] = True
    remaining = torch.zeros(int(source.max()) + 1 if len(source) else 0, dtype=torch.bool)
    remaining[source[own[target] & stays[target]]] = True
    found = held[own[target] & ~stays[target] & ~remaining[source]]
    order = found.source.long().argsort(stable=True)
    first = torch.ones(len(order), dtype=torch.bool)
    first[1:] = found.source[order].diff() != 0
    found = found[order[first]]  # one for each unit
    if not len(found):
        return found
    found.target = torch.full_like(found.target, int((own & stays).nonzero()[0]))
    found.value = torch.zeros_like(found.value)
    return found


def release(ledger: Ledger, task: int, ends: Units, rng: Generator) -> None:
    """Remove the connections of a task that lead to none of these units, and make the units that it reserved and that
    do not lead there free again. Units that nothing uses any more get new initial values."""
    needed = reach(ledger, marks(ledger, ends), "source")
    used = {layer.name: ledger.used(layer.name) for layer in ledger.blueprint.hidden}
    for link in ledger.blueprint.links:
        held = ledger.connections[link.name]
        ledger.connections[link.name] = held[(held.owner != task) | needed[link.target][held.target.long()]]
    for layer in ledger.blueprint.hidden:
        state = ledger.state[layer.name]
        given_back = (state == task) & ~needed[layer.name]
        state[given_back] = FREE
        unused = (used[layer.name] | given_back) & (state == FREE) & ~ledger.used(layer.name)
        for key, value in layer.keys().items():
            ledger.units[key][unused] = value.start(int(unused.sum()), rng)
