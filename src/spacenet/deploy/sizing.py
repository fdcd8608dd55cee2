"""How much of a network a task gets when nobody has searched for it: from the widths and the tasks to be expected."""

import math

from spacenet.errors import SettingsError
from spacenet.space.blueprint import Blueprint

FAN_IN = 4.0
"""A unit gets about this many ingoing connections times the root of the number of units it can choose from.

That is 112 of 784 pixels and 36 of 80 units: near the paper's numbers for Split MNIST (125, and 20 and 40 of 80)."""
STEPS, LEAST_EPOCHS, MOST_EPOCHS = 600, 4, 100
MAPS_SHARE = 0.75
MAPS_SHARE_OF_ONE = 0.15


def sized(blueprint: Blueprint, tasks: int) -> dict[str, tuple[float, ...]]:
    """Selected and reserved units and connections per task, as the settings of a sparse method name them."""
    if tasks < 1:
        raise SettingsError(f"expected-tasks: {tasks} is not a number of tasks (need 1 or more)")
    return _of_maps(blueprint, tasks) if blueprint.convolves else _of_units(blueprint, tasks)


def epochs_for(samples: int, batch_size: int) -> int:
    """Epochs that make about `STEPS` steps: few samples need more of them, many need not all be seen so often."""
    return min(max(STEPS // max(1, math.ceil(samples / max(1, batch_size))), LEAST_EPOCHS), MOST_EPOCHS)


def _of_units(blueprint: Blueprint, tasks: int) -> dict[str, tuple[float, ...]]:
    """Each task selects its part of a layer and reserves half of that, as in the paper; the other half is shared.

    Connections are given as shares of all that a layer can hold, so that they follow the number of a task's classes.
    """
    selected = {p.name: max(1, p.size // tasks) for p in blueprint.hidden}
    size = {p.name: p.size for p in blueprint.populations}
    shares = []
    for link in blueprint.links:
        sources = selected.get(link.source, size[link.source])
        fan_in = min(sources, round(FAN_IN * math.sqrt(sources)))
        targets = selected[link.target] / size[link.target] if link.target in selected else 1.0
        shares.append(min(targets * fan_in / size[link.source], math.nextafter(1.0, 0.0)))
    return {
        "selected": tuple(selected.values()),
        "reserved": tuple(count // 2 for count in selected.values()),
        "connections": tuple(shares),
    }


def _of_maps(blueprint: Blueprint, tasks: int) -> dict[str, tuple[float, ...]]:
    """Feature maps are few, so a task selects all that are free, and reserves a third of its part."""
    groups = {p.group or p.name: p.size for p in blueprint.hidden}
    return {
        "selected": (0,),
        "reserved": tuple(size // (3 * tasks) for size in groups.values()),
        "connections": (min(MAPS_SHARE_OF_ONE, MAPS_SHARE / tasks),),
    }
