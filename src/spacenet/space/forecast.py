"""How many more tasks fit: found by allocating them in a copy of the ledger, as positions may run out before units."""

from collections.abc import Callable

import torch
from torch import Generator

from spacenet.errors import SpaceFull
from spacenet.space.allocation import allocate, select
from spacenet.space.budget import ResolvedBudget
from spacenet.space.ledger import Ledger

LIMIT = 100
"""Where tasks reserve nothing, any number fits."""


def tasks_left(
    ledger: Ledger,
    budget: Callable[[Ledger], ResolvedBudget],
    classes: int,
    first: int,
    rng: Generator,
    unused_first: bool,
) -> int:
    """How many more tasks with this many classes fit, at most `LIMIT`.

    Which units a task would reserve is not known before it is learned; random ones stand for them.
    """
    trial = Ledger(ledger.blueprint)
    trial.load(ledger.tensors())
    for count in range(LIMIT):
        try:
            _allocate_task(trial, budget(trial), classes, first + count, rng, unused_first)
        except SpaceFull:
            return count
    return LIMIT


def _allocate_task(
    ledger: Ledger, budget: ResolvedBudget, classes: int, task: int, rng: Generator, unused_first: bool
) -> None:
    outputs = ledger.size(ledger.blueprint.output.name) + torch.arange(classes)
    selection = select(ledger, budget, outputs, rng, unused_first)
    new = allocate(ledger, budget, selection, task, rng)
    ledger.grow(ledger.blueprint.output.name, classes)
    for link in ledger.blueprint.links:
        ledger.add(link, new[link.name])
    for layer in ledger.blueprint.hidden:
        chosen = selection[layer.name]
        own = torch.randperm(len(chosen), generator=rng)[: budget.reserved[layer.name]]
        ledger.reserve(layer.name, chosen[own], task)
