"""Algorithm 2: select free units for a task and lay its connections among them, at random."""

from collections.abc import Callable

import torch
from torch import Generator, Tensor

from spacenet.errors import SettingsError, SpaceFull
from spacenet.space.blueprint import Link
from spacenet.space.budget import ResolvedBudget
from spacenet.space.ledger import FREE, Connections, Ledger
from spacenet.space.pack import Units, places_between
from spacenet.space.rewiring import rank

MOST_POSITIONS = 2**31
"""Between the units that a task selects in two layers: a random number is drawn for each."""
LIMIT = 100  # where tasks reserve nothing, any number fits: a forecast goes no further


def check(ledger: Ledger, budget: ResolvedBudget, outputs: int) -> None:
    """Raise `SettingsError` if no task with this budget fits, even in an empty network."""
    blueprint = ledger.blueprint
    sizes = {blueprint.input.name: ledger.size(blueprint.input.name), blueprint.output.name: outputs}
    for layer in blueprint.hidden:
        name, size = layer.name, ledger.size(layer.name)
        selected, reserved = budget.selected[name], budget.reserved[name]
        if not 0 < selected <= size:
            message = f"{selected} units of {name} cannot be selected, it has {size} (need 1 to {size})"
            raise SettingsError(message, setting="selected")
        if not 0 <= reserved <= selected:
            message = f"{reserved} units of {name} cannot be reserved of {selected} selected (need 0 to {selected})"
            raise SettingsError(message, setting="reserved")
        sizes[name] = selected
    for link in blueprint.links:
        count, sources, targets = budget.connections[link.name], sizes[link.source], sizes[link.target]
        if not 0 < count <= sources * targets:
            ends = f"the {sources} units of {link.source} and the {targets} of {link.target} that a task selects"
            message = f"{count} do not fit between {ends} (need 1 to {sources * targets})"
            raise SettingsError(message, setting="connections")


def tasks_that_fit(ledger: Ledger, budget: ResolvedBudget) -> int | None:
    """How many more such tasks the free units allow; None if tasks reserve nothing, so that units never run out."""
    reserved = [(name, count) for name, count in budget.reserved.items() if count > 0]
    fit = [(len(ledger.free(name)) - budget.selected[name]) // count + 1 for name, count in reserved]
    return max(0, min(fit)) if fit else None


def select(
    ledger: Ledger, budget: ResolvedBudget, outputs: Tensor, rng: Generator, unused_first: bool = False
) -> Units:
    """Choose the task's units: all inputs, random free ones in each hidden layer, its own outputs.

    With `unused_first`, free units with fewer ingoing connections come before others, so that tasks overlap late.
    """
    selection = {ledger.blueprint.input.name: torch.arange(ledger.size(ledger.blueprint.input.name))}
    for layer in ledger.blueprint.hidden:
        free, count = ledger.free(layer.name), budget.selected[layer.name]
        if len(free) < max(1, count):
            size = ledger.size(layer.name)
            raise _full(
                layer.name,
                f"the next task needs {max(1, count)} free units, {len(free)} are left "
                f"({size - len(free)} of {size} are reserved by earlier tasks).",
                remedy=f"A layer of {size + max(1, count) - len(free)} units, {len(free)} selected units per task "
                f"instead of {count}, fewer reserved ones, or",
            )
        shuffled = free[torch.randperm(len(free), generator=rng)]
        if unused_first:
            shuffled = shuffled[ledger.ingoing(layer.name)[shuffled].argsort(stable=True)]
        selection[layer.name] = shuffled[:count].sort().values
    selection[ledger.blueprint.output.name] = outputs
    return selection


def allocate(
    ledger: Ledger,
    budget: ResolvedBudget,
    selection: Units,
    task: int,
    rng: Generator,
    own_width: bool = False,
    reads_earlier: bool = False,
) -> dict[str, Connections]:
    """Lay the task's connections at random open positions. Weights are Glorot-uniform for the dense shape of the whole
    network; with `own_width` for that of the units they lie between, as in a network that has no others. With
    `reads_earlier` they may also come from units that earlier tasks reserved, and are more in proportion."""
    new = {}
    read = (
        {name: _with_reserved(ledger, name, units) for name, units in selection.items()} if reads_earlier else selection
    )
    for link in ledger.blueprint.links:
        targets, sources = selection[link.target], read[link.source]
        wanted = budget.connections[link.name] * len(sources) // max(1, len(selection[link.source]))
        if len(targets) * len(sources) > MOST_POSITIONS:
            units = f"{len(sources):,} units of {link.source} and {len(targets):,} of {link.target}"
            raise SettingsError(f"{units} are too many to lay connections among; select fewer", setting="selected")
        taken = torch.zeros(len(targets) * len(sources), dtype=torch.bool)
        taken[places_between(ledger, link, sources, targets)] = True
        left, dead = int((~taken).sum()), ledger.dead(link, targets)
        count = min(wanted, left)
        least = budget.least.get(link.name, wanted)
        if link.name in budget.least and link.source == ledger.blueprint.input.name:
            least = min(least, int(dead.sum()))  # selected units may be connected to the inputs already
        if count < least:
            raise _full(
                _narrow_end(ledger, link, selection),
                f"{least} connections from {link.source} to {link.target} are needed, but only {left} positions "
                "between the selected units are not owned by earlier tasks.",
                remedy=f"{left} connections per task instead of {wanted}, more units, or",
            )
        place = _scatter(taken.view(len(targets), len(sources)), dead, count, rng)
        # The output layer has no final width: its dense shape is that of the task's own outputs.
        own_targets = own_width or link.target == ledger.blueprint.output.name
        fans = (
            len(sources) if own_width else ledger.size(link.source),
            len(targets) if own_targets else ledger.size(link.target),
        )
        value = link.initial((count,), *fans, rng)
        owner = torch.full((count,), task, dtype=torch.int16)
        ends = sources[place % len(sources)].int(), targets[place // len(sources)].int()
        new[link.name] = Connections(*ends, owner, value)
    return new


def _with_reserved(ledger: Ledger, layer: str, units: Tensor) -> Tensor:
    """These units and those that earlier tasks reserved, in ascending order."""
    return torch.cat([units, (ledger.state[layer] != FREE).nonzero().flatten()]).sort().values


def tasks_left(
    ledger: Ledger,
    budget: Callable[[Ledger], ResolvedBudget],
    classes: int,
    rng: Generator,
    unused_first: bool,
    reads_earlier: bool = False,
    most: int = LIMIT,
) -> int:
    """How many more tasks with this many classes fit, at most `most`.

    They are allocated in a copy of the ledger, as positions may run out before units. Which units a task would reserve
    is not known before it is learned; random ones stand for them.
    """
    trial = Ledger(ledger.blueprint)
    trial.load(ledger.tensors())
    for task in range(most):  # whose number makes no difference
        outputs = trial.size(trial.blueprint.output.name) + torch.arange(classes)
        try:
            wanted = budget(trial)
            selection = select(trial, wanted, outputs, rng, unused_first)
            new = allocate(trial, wanted, selection, task, rng, reads_earlier=reads_earlier)
        except SpaceFull:
            return task
        trial.grow(trial.blueprint.output.name, classes)
        for link in trial.blueprint.links:
            trial.add(link, new[link.name])
        for layer in trial.blueprint.hidden:
            chosen = selection[layer.name]
            own = torch.randperm(len(chosen), generator=rng)[: wanted.reserved[layer.name]]
            trial.reserve(layer.name, chosen[own], task)
    return most


def _full(layer: str, reason: str, remedy: str) -> SpaceFull:
    cli, python = (f"{remedy} {expand} makes room." for expand in ("--expand auto", "expand='auto'"))
    return SpaceFull(f"{layer} is full: {reason}", layer=layer, cli=cli, python=python)


def _narrow_end(ledger: Ledger, link: Link, selection: Units) -> str:
    """The end of a full link where more units would make the most room."""
    if link.source == ledger.blueprint.input.name:
        return link.target
    if link.target == ledger.blueprint.output.name:
        return link.source
    return link.source if len(selection[link.source]) < len(selection[link.target]) else link.target


def _scatter(taken: Tensor, dead: Tensor, count: int, rng: Generator) -> Tensor:
    """`count` random open places: at first one in each row, `dead` rows before others, then anywhere.

    A share of a tiny layer could otherwise leave units, and with them the network, dead.
    """
    order = torch.rand(taken.shape, generator=rng).masked_fill(taken, 2.0)
    first = order.min(dim=1)
    earlier = torch.where(first.values < 2.0, first.values - 1.0 - dead.float(), 2.0)
    order.scatter_(1, first.indices[:, None], earlier[:, None])
    return rank(order.flatten(), count).sort().values
