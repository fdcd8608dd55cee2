"""Algorithm 2: pick free units for a task and lay its connections among them, at random."""

import torch
from torch import Generator, Tensor

from spacenet.errors import SettingsError, SpaceFull
from spacenet.space.blueprint import Link
from spacenet.space.budget import ResolvedBudget
from spacenet.space.cut import Units, inside
from spacenet.space.ledger import FREE, Connections, Ledger


def check(ledger: Ledger, budget: ResolvedBudget, outputs: int) -> None:
    """Raise `SettingsError` if no task could ever be learned with this demand, even in an empty network."""
    sizes = {
        ledger.blueprint.input.name: ledger.size(ledger.blueprint.input.name),
        ledger.blueprint.output.name: outputs,
    }
    for layer in ledger.blueprint.hidden:
        name, size = layer.name, ledger.size(layer.name)
        selected, reserved = budget.selected[name], budget.reserved[name]
        if not 0 < selected <= size:
            raise SettingsError(
                f"selected: {selected} units of {name} cannot be selected, it has {size} (need 1 to {size})"
            )
        if not 0 <= reserved <= selected:
            raise SettingsError(
                f"reserved: {reserved} units of {name} cannot be reserved of {selected} selected (need 0 to {selected})"
            )
        sizes[name] = selected
    for link in ledger.blueprint.links:
        count, positions = budget.connections[link.name], sizes[link.source] * sizes[link.target]
        if not 0 < count <= positions:
            raise SettingsError(
                f"connections: {count} do not fit between the {sizes[link.source]} units of {link.source} and the "
                f"{sizes[link.target]} of {link.target} that a task selects (need 1 to {positions})"
            )


def tasks_that_fit(ledger: Ledger, budget: ResolvedBudget) -> int | None:
    """How many more such tasks the free units allow; None if nothing is ever reserved, so that units never run out."""
    counts = [
        max(0, (len(ledger.free(name)) - budget.selected[name]) // reserved + 1)
        for name, reserved in budget.reserved.items()
        if reserved > 0
    ]
    return min(counts, default=None)


def select(
    ledger: Ledger, budget: ResolvedBudget, outputs: Tensor, rng: Generator, unused_first: bool = False
) -> Units:
    """Choose the task's units: all inputs, random free ones in each hidden layer, its own outputs.

    With `unused_first`, free units with fewer ingoing connections come before others: what earlier tasks built is
    disturbed as late as possible.
    """
    selection = {ledger.blueprint.input.name: torch.arange(ledger.size(ledger.blueprint.input.name))}
    for layer in ledger.blueprint.hidden:
        free, count = ledger.free(layer.name), budget.selected[layer.name]
        if len(free) < max(1, count):
            reserved = int((ledger.state[layer.name] != FREE).sum())
            raise SpaceFull(
                f"{layer.name} is full: the next task needs {max(1, count)} free units, {len(free)} are left "
                f"({reserved} of {ledger.size(layer.name)} are reserved by earlier tasks). "
                "A wider layer, fewer selected or reserved units per task, or --expand make room for more tasks.",
                layer=layer.name,
            )
        shuffled = free[torch.randperm(len(free), generator=rng)]
        if unused_first:
            shuffled = shuffled[ledger.ingoing(layer.name)[shuffled].argsort(stable=True)]
        selection[layer.name] = shuffled[:count].sort().values
    selection[ledger.blueprint.output.name] = outputs
    return selection


def allocate(
    ledger: Ledger, budget: ResolvedBudget, selection: Units, task: int, rng: Generator
) -> dict[str, Connections]:
    """Lay the task's connections at random positions nobody owns; values are Glorot-uniform for the dense shape.

    Selected units first get one ingoing connection each, those without any before others: percentages of tiny layers
    would otherwise leave units, and with them the network, dead.
    """
    new = {}
    for link in ledger.blueprint.links:
        targets, sources = selection[link.target], selection[link.source]
        taken = torch.zeros(len(targets) * len(sources), dtype=torch.bool)
        taken[inside(ledger, link, selection)[0]] = True
        left, dead = int((~taken).sum()), _dead(ledger, link, targets)
        count = min(budget.connections[link.name], left)
        least = budget.least.get(link.name, budget.connections[link.name])
        if link.name in budget.least and link.source == ledger.blueprint.input.name:
            least = min(least, int(dead.sum()))  # units that were chosen may hear the inputs already
        if count < least:
            layer = _narrow_end(ledger, link, selection)
            raise SpaceFull(
                f"{layer} is full: {least} connections from {link.source} to {link.target} are needed, but only "
                f"{left} positions between the selected units are not owned by earlier tasks. "
                "Fewer connections per task, more selected units, or --expand make room.",
                layer=layer,
            )
        place = _scatter(taken.view(len(targets), len(sources)), dead, count, rng)
        # The output layer has no final width: as the dense shape of it counts what the task adds.
        dense_targets = len(targets) if link.target == ledger.blueprint.output.name else ledger.size(link.target)
        new[link.name] = Connections(
            sources[place % len(sources)].int(),
            targets[place // len(sources)].int(),
            torch.full((count,), task, dtype=torch.int16),
            link.initial((count,), ledger.size(link.source), dense_targets, rng),
        )
    return new


def _narrow_end(ledger: Ledger, link: Link, selection: Units) -> str:
    """The end of a full link where more units would make the most room."""
    if link.source == ledger.blueprint.input.name:
        return link.target
    if link.target == ledger.blueprint.output.name:
        return link.source
    return link.source if len(selection[link.source]) < len(selection[link.target]) else link.target


def _dead(ledger: Ledger, link: Link, targets: Tensor) -> Tensor:
    """Which of the targets have no ingoing connection over this link. Outputs are new, they have none."""
    if link.target == ledger.blueprint.output.name:
        return torch.ones(len(targets), dtype=torch.bool)
    return ~ledger.fed(link)[targets]


def _scatter(taken: Tensor, dead: Tensor, count: int, rng: Generator) -> Tensor:
    """`count` random untaken places: one in each row as far as they go, `dead` rows first, the others anywhere."""
    order = torch.rand(taken.shape, generator=rng).masked_fill(taken, 2.0)
    first = order.min(dim=1)
    earlier = torch.where(first.values < 2.0, first.values - 1.0 - dead.float(), 2.0)
    order.scatter_(1, first.indices[:, None], earlier[:, None])
    return order.flatten().argsort(stable=True)[:count].sort().values
