"""How much of a network a task gets when nobody has searched for it: from the widths and the tasks to be expected."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from spacenet.space.blueprint import Blueprint

FAN_IN = 4.0
"""A unit gets about this many ingoing connections times the root of the number of units it can choose from.

That is 112 of 784 pixels and 36 of 80 units: near the paper's numbers for Split MNIST (125, and 20 and 40 of 80)."""
MAPS_SHARE, MAPS_SHARE_MOST = 0.75, 0.15
"""Of the kernels that a layer of feature maps could have: for all tasks together, and at most for one."""


class TaskBudget(NamedTuple):
    """What a task may use, as `budget.resolve` takes it."""

    selected: Sequence[int]
    reserved: Sequence[int]
    connections: Sequence[float]


def default_budget(blueprint: Blueprint, tasks: int, selected: Sequence[int] = ()) -> TaskBudget:
    """What a task gets if so many tasks are to be expected; `selected` may be given."""
    groups = {p.group or p.name: p.size for p in blueprint.hidden}
    if blueprint.convolves:
        # Feature maps are few, so a task selects all that are free, and reserves a third of its part.
        share = min(MAPS_SHARE_MOST, MAPS_SHARE / tasks)
        return TaskBudget(selected or (0,), [size // (3 * tasks) for size in groups.values()], (share,))
    # Each task selects its part of a layer and reserves half of that, as in the paper; the other half is shared.
    chosen = selected or [max(1, size // tasks) for size in groups.values()]
    each = dict(zip(groups, [*chosen] * (len(groups) if len(chosen) == 1 else 1), strict=False))
    widths = {name: min(each.get(name) or size, size) for name, size in groups.items()}
    return TaskBudget(chosen, [count // 2 for count in widths.values()], _shares(blueprint, widths))


def _shares(blueprint: Blueprint, selected: dict[str, int]) -> list[float]:
    """Connections as shares of all that a layer can hold, so that they follow the number of a task's classes."""
    size = {p.name: p.size for p in blueprint.layers}
    shares = []
    for link in blueprint.links:
        sources = selected.get(link.source, size[link.source])
        fan_in = min(sources, round(FAN_IN * math.sqrt(sources)))
        targets = selected[link.target] / size[link.target] if link.target in selected else 1.0
        shares.append(min(targets * fan_in / size[link.source], math.nextafter(1.0, 0.0)))
    return shares
