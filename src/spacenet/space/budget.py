"""How much of the network a task may use: as the settings give it, and in units and connections of each layer."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from spacenet.errors import SettingsError
from spacenet.space.blueprint import Blueprint, Link
from spacenet.space.ledger import Ledger

# By default a unit gets this many ingoing connections times the root of the number of units it can choose from: 112 of
# 784 pixels and 36 of 80 units, near the paper's numbers for Split MNIST (125, and 20 and 40 of 80).
FAN_IN = 4.0
# The default share of the possible kernels between feature maps: for all tasks together, and at most for one.
MAPS_SHARE, MAPS_SHARE_MOST = 0.75, 0.15

BISECTIONS = 40
DIGITS = 3
"""Of the number of units of a dense part, in binary."""
SMALLER = 0.85
"""Part of its share that a task gets where there are more or fewer tasks than a budget was made for: all shall fit."""


@dataclass(frozen=True)
class ResolvedBudget:
    """What one task may use, by the names of layers and links."""

    selected: Mapping[str, int]  # free units to lay connections among, for each hidden layer (the paper's sel)
    reserved: Mapping[str, int]  # how many of those the task reserves at its end (the paper's spec)
    connections: Mapping[str, int]  # how many connections each link gets
    least: Mapping[str, int] = field(default_factory=dict)
    """How many are enough if fewer positions are open; links that are not named need all."""


@dataclass(frozen=True)
class TaskBudget:
    """What a task may use, as the settings give it. One number stands for all layers."""

    selected: Sequence[int]  # 0 means all free units
    reserved: Sequence[int]
    connections: Sequence[float]  # below 1: a share of all connections that a link could have
    classes: int = (
        0  # of a task for which the number of connections to the output is meant; 0: it is that of every task
    )

    def resolve(
        self, ledger: Ledger, classes: int, planned: Mapping[str, int] = MappingProxyType({})
    ) -> ResolvedBudget:
        """The budget of a task with this many classes. Shares are those of layers of the `planned` sizes: where units
        are added whenever a task does not fit, a task would otherwise ask for more and more connections between the
        same number of units.

        A share of a tiny layer is raised so that no selected unit is dead. What is added is taken from the largest
        link, so that the total stays. Where fewer positions are open, half of a share is enough; from the inputs, which
        may be a single channel, as many as the selected units need to have one ingoing connection each.
        """
        blueprint = ledger.blueprint
        groups = {layer.name: layer.group or layer.name for layer in blueprint.hidden}
        names = list(dict.fromkeys(groups.values()))
        selected, reserved = _for_each("selected", self.selected, names), _for_each("reserved", self.reserved, names)
        units = {name: int(selected[group]) or len(ledger.free(name)) for name, group in groups.items()}
        asked = _for_each("connections", self.connections, [link.name for link in blueprint.links])
        size = {layer.name: ledger.size(layer.name) for layer in blueprint.layers} | dict(planned)
        size[blueprint.output.name] = classes
        shares = [link for link in blueprint.links if asked[link.name] < 1]
        for link in blueprint.classifiers if self.classes else ():
            if asked[link.name] >= 1:
                asked[link.name] = max(1, round(asked[link.name] * classes / self.classes))
        plain = {link.name: round(asked[link.name] * size[link.source] * size[link.target]) for link in shares}
        dead = {link.name: _count_dead(ledger, link, units, classes) for link in shares}
        raised = {name: max(count, dead[name]) for name, count in plain.items()}
        if raised:
            largest = max(raised, key=lambda name: raised[name])
            raised[largest] = max(dead[largest], raised[largest] - sum(raised.values()) + sum(plain.values()))
        inputs = blueprint.input.name
        least = {k.name: dead[k.name] if k.source == inputs else -(-raised[k.name] // 2) for k in shares}
        counts = {name: int(count) for name, count in asked.items()} | raised
        return ResolvedBudget(units, {name: int(reserved[group]) for name, group in groups.items()}, counts, least)

    def scale(self, blueprint: Blueprint, tasks: int, others: int, before: Sequence[int] = (0,)) -> "TaskBudget":
        """The budget of one of `others` tasks in the place of one of `tasks`: together they use as much of the network,
        and a task's connections are as dense between the units that it selects. A task `before` them has reserved so
        many units."""
        if tasks == others:
            return self
        sizes = {layer.group or layer.name: layer.size for layer in blueprint.hidden}
        group = {layer.name: layer.group or layer.name for layer in blueprint.hidden}
        selected, reserved, taken = (
            _for_each(name, numbers, list(sizes))
            for name, numbers in (("selected", self.selected), ("reserved", self.reserved), ("first_reserved", before))
        )
        ratio, connections = (
            tasks / others,
            _for_each("connections", self.connections, [k.name for k in blueprint.links]),
        )
        kept = {name: _scale_reserved(reserved[name], ratio, others, size) for name, size in sizes.items()}
        units = dict.fromkeys(sizes, 0)
        for name in (name for name in sizes if selected[name]):
            left = sizes[name] - int(taken[name]) - (others - 1) * kept[name]  # when the last task comes
            units[name] = max(1, min(round(selected[name] * ratio), left))
        for link in blueprint.links:
            ends = [bool(units.get(group.get(end, ""))) for end in (link.source, link.target)]
            share = connections[link.name] < 1
            follows = (
                share and link.target == blueprint.output.name
            )  # it is one of what the task's own classes can have
            value = connections[link.name] * ratio ** (sum(ends) if any(ends) or follows else 1)
            room = SMALLER if share and not follows else 1.0
            connections[link.name] = min(value * room, math.nextafter(1.0, 0.0)) if share else max(1, round(value))
        kept = {name: min(kept[name], units[name] or kept[name]) for name in sizes}
        return replace(self, selected=[*units.values()], reserved=[*kept.values()], connections=[*connections.values()])


def _scale_reserved(count: float, ratio: float, tasks: int, size: int) -> int:
    """At least one unit where there was one, unless all tasks together would then reserve more than half a layer."""
    scaled = int(count * ratio)
    return scaled or int(count > 0 and 2 * tasks <= size)


def default_budget(blueprint: Blueprint, tasks: int, selected: Sequence[int] = ()) -> TaskBudget:
    """What a task gets if this many tasks are expected and no budget is given; `selected` may be given."""
    groups = {layer.group or layer.name: layer.size for layer in blueprint.hidden}
    if blueprint.convolves:
        # Feature maps are few, so a task selects all free ones and reserves a third of its part.
        share = min(MAPS_SHARE_MOST, MAPS_SHARE / tasks)
        return TaskBudget(selected or (0,), [size // (3 * tasks) for size in groups.values()], (share,))
    # Each task selects its part of a layer and reserves half of that, as in the paper; the other half is shared.
    chosen = selected or [max(1, size // tasks) for size in groups.values()]
    each = dict(zip(groups, [*chosen] * (len(groups) if len(chosen) == 1 else 1), strict=False))
    widths = {name: min(each.get(name) or size, size) for name, size in groups.items()}
    # Connections are shares of all possible ones, so that they follow the number of a task's classes.
    size, shares = {layer.name: layer.size for layer in blueprint.layers}, []
    for link in blueprint.links:
        sources = widths.get(link.source, size[link.source])
        fan_in = min(sources, round(FAN_IN * math.sqrt(sources)))
        targets = widths[link.target] / size[link.target] if link.target in widths else 1.0
        shares.append(min(targets * fan_in / size[link.source], math.nextafter(1.0, 0.0)))
    return TaskBudget(chosen, [count // 2 for count in widths.values()], shares)


def dense_budget(
    blueprint: Blueprint, tasks: int, weights: int | None = None, reads_earlier: bool = False
) -> TaskBudget:
    """Units of its own for each of this many tasks, with all connections between them: the same part of every layer.

    With `weights`, only as many units as keep the weights of all tasks together at or below that number; with
    `reads_earlier` each task also has connections from the units of all earlier ones, which count too. Numbers of
    units have few binary digits: a GPU computes 64 or 128 feature maps at a time, and 65 take almost as long as 128.
    """
    sizes = {layer.group or layer.name: layer.size for layer in blueprint.hidden}
    group = {layer.name: layer.group or layer.name for layer in blueprint.hidden}

    def resolve(part: float) -> tuple[dict[str, int], list[float], int]:
        """The units of each group, the connections of each link, and the weights of a task."""
        units = {name: max(1, _round_down(int(part * size))) for name, size in sizes.items()}
        counts, total = list[float](), 0
        for link in blueprint.links:
            if link.target == blueprint.output.name:  # a share, so that it follows the number of a task's classes
                source = group[link.source]
                counts.append(min(units[source] / sizes[source], math.nextafter(1.0, 0.0)))
                continue
            ends = [units[group[end]] if end in group else blueprint.input.size for end in (link.source, link.target)]
            counts.append(ends[0] * ends[1])
            read = (tasks + 1) / 2 if reads_earlier and link.source in group else 1  # parts, in the mean over tasks
            total += math.ceil(ends[0] * ends[1] * math.prod(link.kernel) * read)
        return units, counts, total

    low, high = 0.0, 1.0 / tasks
    if weights is not None and resolve(high)[2] * tasks > weights:
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            low, high = (low, middle) if resolve(middle)[2] * tasks > weights else (middle, high)
        high = low
    units, connections, _ = resolve(high)
    return TaskBudget([*units.values()], [*units.values()], connections)


def _round_down(count: int) -> int:
    """The largest number up to this one that has only its first three binary digits."""
    return count - count % (1 << max(0, count.bit_length() - DIGITS))


def _count_dead(ledger: Ledger, link: Link, selected: Mapping[str, int], classes: int) -> int:
    """At most how many of the units that a task selects have no ingoing connection over this link yet."""
    if link.target == ledger.blueprint.output.name:
        return classes
    return min(selected[link.target], int(ledger.dead(link, ledger.free(link.target)).sum()))


def _for_each(setting: str, numbers: Sequence[float], names: list[str]) -> dict[str, float]:
    """One number per name; a single number stands for all."""
    if len(numbers) not in (1, len(names)):
        message = f"{len(numbers)} numbers for {', '.join(names)}; give one number, or {len(names)}"
        raise SettingsError(message, setting=setting)
    return dict(zip(names, itertools.cycle(numbers), strict=False))
