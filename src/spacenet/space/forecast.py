"""How many more tasks fit: by laying them out in a copy of the ledger, since positions may run out before units do."""

from collections.abc import Callable

import torch
from torch import Generator

from spacenet.errors import SpaceFull
from spacenet.space.allocation import allocate, select
from spacenet.space.budget import Demand
from spacenet.space.ledger import Ledger

LIMIT = 100
"""Nobody asks beyond this; where tasks reserve nothing, there is no end."""


def tasks_left(
    ledger: Ledger, demand: Callable[[Ledger], Demand], classes: int, first: int, rng: Generator, unused_first: bool
) -> int:
    """How many more tasks of so many classes the space holds, at most `LIMIT`. Which units a task would reserve is
    not known before it is learned; any will do here."""
    trial = Ledger(ledger.blueprint)
    trial.load(ledger.tensors())
    for count in range(LIMIT):
        try:
            _lay_out(trial, demand(trial), classes, first + count, rng, unused_first)
        except SpaceFull:
            return count
    return LIMIT


def _lay_out(ledger: Ledger, demand: Demand, classes: int, task: int, rng: Generator, unused_first: bool) -> None:
    outputs = ledger.size(ledger.blueprint.output.name) + torch.arange(classes)
    selection = select(ledger, demand, outputs, rng, unused_first)
    new = allocate(ledger, demand, selection, task, rng)
    ledger.grow(ledger.blueprint.output.name, classes)
    for link in ledger.blueprint.links:
        ledger.add(link, new[link.name])
    for population in ledger.blueprint.hidden:
        chosen = selection[population.name]
        own = torch.randperm(len(chosen), generator=rng)[: demand.reserved[population.name]]
        ledger.reserve(population.name, chosen[own], task)
