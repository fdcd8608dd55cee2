"""The capacity map: to which task each hidden unit belongs, and how much is left."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spacenet.model.model import Model
from spacenet.report.plots.areas import letters_on, listed, paint, words
from spacenet.report.plots.plot import GROUND, INK, LINE, MUTED, Plot, colours, new_figure
from spacenet.report.run_data import RunFacts
from spacenet.space.forecast import LIMIT
from spacenet.space.ledger import FREE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WITH_CELLS = 6
"""Up to so many layers are drawn with a cell for each unit, more of them as bars."""
STRIP, BAR, BETWEEN = 0.62, 0.16, 0.22
"""Inches: heights of a layer with cells and of one without, and between layers with cells."""
ACROSS = 5.9
"""Inches that a layer is wide, about."""
LETTER = 0.063
"""Inches of a letter, about."""
SMALLEST = 0.04
"""Inches: lines between cells that are narrower would hide them."""


@dataclass(frozen=True)
class LayerUse:
    """The units of a hidden layer: reserved, shared and unused ones add up to all."""

    name: str
    units: int
    reserved: tuple[int, ...]
    """By each task."""
    shared: int
    """In use, but free: later tasks may select them too."""
    unused: int

    @property
    def areas(self) -> list[tuple[str, int]]:
        """The layer from left to right: names of its parts and their units."""
        tasks = [(f"task {number}", count) for number, count in enumerate(self.reserved, 1)]
        return [area for area in (*tasks, ("shared", self.shared), ("unused", self.unused)) if area[1]]


@dataclass(frozen=True)
class CapacityData:
    """What each hidden layer holds, and how many more tasks like the last fit (None: it cannot learn on)."""

    layers: tuple[LayerUse, ...]
    tasks_left: int | None

    @property
    def tasks(self) -> int:
        return len(self.layers[0].reserved)


def capacity_data(facts: RunFacts) -> CapacityData | None:
    """Counted in the ledger; None where there is no space."""
    if facts.model is None:
        return None
    layers = tuple(_layer(facts.model, layer.name) for layer in facts.model.method.blueprint.hidden)
    return CapacityData(layers, None if facts.model.method.needs_old_data else facts.model.space_left())


def _layer(model: Model, name: str) -> LayerUse:
    state, used = model.method.ledger.state[name], model.method.ledger.used(name)
    free = state == FREE
    counts = state[~free].long().bincount(minlength=len(model.tasks))
    return LayerUse(name, len(state), tuple(counts.tolist()), int((free & used).sum()), int((free & ~used).sum()))


def capacity_picture(data: CapacityData) -> Plot:
    """A strip for each layer, its units sorted by task."""
    parts = (f"{layer.name}: {listed([f'{name} {count}' for name, count in layer.areas])}" for layer in data.layers)
    text = f"Units of each hidden layer by the task that reserved them. {'; '.join(parts)}."
    return Plot("capacity-map", _title(data), text, lambda: _draw(data))


def _title(data: CapacityData) -> str:
    tasks = words(data.tasks, "task")
    verb = "reserves" if data.tasks == 1 else "reserve"
    found = {(sum(layer.reserved), layer.units) for layer in data.layers}
    where = "in each layer" if len(data.layers) > 1 else f"of {data.layers[0].name}"
    if len(found) == 1:
        [(reserved, units)] = found
        what = f"{tasks} {verb} {reserved:,} of {units:,} units {where}"
    else:
        shares = sorted(round(100 * reserved / units) for reserved, units in found)
        share = f"{shares[0]} to {shares[-1]} %" if shares[0] != shares[-1] else f"{shares[0]} %"
        what = f"{tasks} {verb} {share} of the units {where}"
    left = data.tasks_left
    if left is None:
        return what
    more = {0: "no other like the last fits", 1: "1 more like the last fits", LIMIT: f"{LIMIT} or more others fit"}
    return f"{what}; {more.get(left, f'{left} more like the last fit')}"


def _draw(data: CapacityData) -> "Figure":
    cells = len(data.layers) <= WITH_CELLS
    tall, pitch = (STRIP, STRIP + BETWEEN) if cells else (BAR, 1.3 * BAR)
    figure = new_figure(pitch * len(data.layers) + 0.65)
    axes = figure.subplots()
    for number, layer in enumerate(data.layers):
        rows = _rows(layer.units) if cells else 1
        _strip(axes, layer, rows, top=number * pitch, tall=tall)
        _labels(axes, layer, number * pitch + tall / 2, two_lines=cells, tasks=cells or number == 0)
    axes.set(xlim=(0, 1), ylim=(pitch * (len(data.layers) - 1) + tall, 0), xticks=[])
    units = "\n{:,} units" if cells else " ({:,})"
    names = [layer.name + units.format(layer.units) for layer in data.layers]
    axes.set_yticks([number * pitch + tall / 2 for number in range(len(data.layers))], names)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_xlabel(f"units sorted by task; {'each cell is a unit' if cells else 'numbers of units in brackets'}")
    if any(layer.shared for layer in data.layers):
        axes.bar(0, 0, color=MUTED, label="shared: in use, yet open to later tasks")
    if any(layer.unused for layer in data.layers):
        axes.bar(0, 0, color=LINE, label="unused")
    if axes.get_legend_handles_labels()[0]:
        figure.legend(loc="outside lower center", ncols=2, fontsize=8, handlelength=1, handleheight=1)
    return figure


def _rows(units: int) -> int:
    """Rows of cells that are about square, a number that leaves no gap if one is near."""
    fitting = (units * STRIP / ACROSS) ** 0.5
    near = range(max(1, round(fitting * 0.75)), round(fitting * 1.35) + 2)
    return min(near, key=lambda rows: (units % rows > 0, abs(math.log(rows / fitting))))


def _strip(axes: "Axes", layer: LayerUse, rows: int, top: float, tall: float) -> None:
    """The units fill columns of so many rows, from top to bottom and from left to right."""
    columns = -(-layer.units // rows)
    numbers = np.full(rows * columns, -1)
    numbers[: sum(layer.reserved)] = np.repeat(np.arange(len(layer.reserved)), layer.reserved)
    box = (0.0, 1.0, top + tall, top)
    paint(axes, numbers.reshape(columns, rows).T, colours(len(layer.reserved)), box)
    first = sum(layer.reserved)
    for count, colour in ((layer.shared, MUTED), (layer.unused, LINE)):
        _fill(axes, first, first + count, rows, columns, colour, top, tall)
        first += count
    if rows > 1 and ACROSS / columns > SMALLEST:
        axes.vlines(np.arange(1, columns) / columns, top, top + tall, color=GROUND, linewidth=0.5)
        axes.hlines(top + tall * np.arange(1, rows) / rows, 0, 1, color=GROUND, linewidth=0.5)


def _fill(axes: "Axes", first: int, end: int, rows: int, columns: int, colour: str, top: float, tall: float) -> None:
    """Units from `first` on, up to `end`: what is in its first column, in whole columns, and in its last."""
    while first < end:
        column, row = divmod(first, rows)
        width = max(1, (end - first) // rows) if row == 0 else 1
        height = rows if row == 0 and end - first >= rows else min(rows - row, end - first)
        axes.barh(
            top + tall * row / rows, width / columns, tall * height / rows, column / columns, align="edge", color=colour
        )
        first += width * height


def _labels(axes: "Axes", layer: LayerUse, middle: float, *, two_lines: bool, tasks: bool) -> None:
    """Names on the areas as far as there is room; with many tasks some of the numbers."""
    shades, end, free = colours(len(layer.reserved)), 0, -1.0
    for name, count in layer.areas:
        centre, width = (end + count / 2) / layer.units * ACROSS, count / layer.units * ACROSS
        end += count
        is_task = name.startswith("task")
        number = name.removeprefix("task ")
        if two_lines and width > LETTER * len(f"{count} units"):
            text = f"{name}\n{words(count, 'unit')}"
        elif is_task or two_lines:
            text = number
        else:
            text = f"{count} {name}"
        wide = LETTER * max(map(len, text.split("\n")))
        if (is_task and (not tasks or centre - wide / 2 < free)) or (not is_task and wide > width):
            continue
        free = centre + wide / 2 + LETTER * (1 if wide < width else 3)
        ground = shades[int(number) - 1] if is_task else MUTED if name == "shared" else LINE
        colour = letters_on(ground) if is_task else GROUND if name == "shared" else INK
        size, box = (
            8 if two_lines else 7,
            {"boxstyle": "square,pad=0.1", "color": ground} if two_lines and wide < width else None,
        )
        axes.text(centre / ACROSS, middle, text, color=colour, size=size, ha="center", va="center", bbox=box)
