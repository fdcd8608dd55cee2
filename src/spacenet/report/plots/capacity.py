"""The capacity map: which task has reserved each hidden unit, and how many are left."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spacenet.experiments.run import RunData
from spacenet.model.model import Model
from spacenet.report.plots.drawing import paint, text_color
from spacenet.report.plots.labels import abbreviate
from spacenet.report.plots.plot import GROUND, INK, LINE, MUTED, Plot, new_figure, task_colors
from spacenet.report.tables import capacity_text
from spacenet.space.ledger import FREE
from spacenet.utils.text import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_WITH_CELLS = 6
"""Layers up to which each unit is drawn as a cell; more layers are drawn as bars."""
STRIP, BAR, BETWEEN = 0.62, 0.16, 0.22
"""Inches: heights of a layer with cells and of one without, and between layers with cells."""
ACROSS = 5.9
"""Approximate width of a layer in inches."""
LETTER = 0.063
"""Approximate width of a letter in inches."""
MIN_CELL = 0.04
"""Inches; narrower cells have no lines between them, which would hide them."""


@dataclass(frozen=True)
class LayerAreas:
    """The units of a hidden layer: reserved, shared and unused ones add up to all of them."""

    name: str
    units: int
    reserved: tuple[int, ...]
    """By each task, for good."""
    shared: int
    """In use, but not reserved: later tasks may use them too."""
    unused: int

    @property
    def areas(self) -> list[tuple[str, int]]:
        """The parts of the layer from left to right: name and number of units."""
        tasks = [(f"task {number}", count) for number, count in enumerate(self.reserved, 1)]
        return [area for area in (*tasks, ("shared", self.shared), ("unused", self.unused)) if area[1]]


@dataclass(frozen=True)
class CapacityData:
    """How each hidden layer is divided, and how many more tasks like the last one fit (None: it needs all old data)."""

    layers: tuple[LayerAreas, ...]
    tasks_left: int | None

    @property
    def tasks(self) -> int:
        return len(self.layers[0].reserved)


def capacity_data(run: RunData) -> CapacityData | None:
    """Counted in the model's ledger; None without a model."""
    if run.model is None:
        return None
    layers = tuple(_layer(run.model, layer.name) for layer in run.model.method.blueprint.hidden)
    return CapacityData(layers, None if run.model.method.needs_old_data else run.model.space_left())


def _layer(model: Model, name: str) -> LayerAreas:
    state, used = model.method.ledger.state[name], model.method.ledger.used(name)
    free = state == FREE
    counts = state[~free].long().bincount(minlength=len(model.tasks))
    return LayerAreas(name, len(state), tuple(counts.tolist()), int((free & used).sum()), int((free & ~used).sum()))


def capacity_plot(data: CapacityData) -> Plot:
    """A strip for each layer, its units sorted by task."""
    parts = (f"{layer.name}: {abbreviate([f'{name} {count}' for name, count in layer.areas])}" for layer in data.layers)
    text = f"Map of the units of each hidden layer by the task that reserved them. {'; '.join(parts)}."
    return Plot("capacity-map", _title(data), text, lambda: _draw(data))


def _title(data: CapacityData) -> str:
    tasks = plural(data.tasks, "task")
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
    return what if data.tasks_left is None else f"{what}; {capacity_text(data.tasks_left)}"


def _draw(data: CapacityData) -> "Figure":
    cells = len(data.layers) <= MAX_WITH_CELLS
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
    axes.set_xlabel(f"units sorted by task; {'each cell is a unit' if cells else 'number of units in parentheses'}")
    if any(layer.shared for layer in data.layers):
        axes.bar(0, 0, color=MUTED, label="shared: in use, and open to later tasks")
    if any(layer.unused for layer in data.layers):
        axes.bar(0, 0, color=LINE, label="unused")
    if axes.get_legend_handles_labels()[0]:
        figure.legend(loc="outside lower center", ncols=2, fontsize=8, handlelength=1, handleheight=1)
    return figure


def _rows(units: int) -> int:
    """Rows that make cells about square, without a gap at the end if possible."""
    fitting = (units * STRIP / ACROSS) ** 0.5
    near = range(max(1, round(fitting * 0.75)), round(fitting * 1.35) + 2)
    return min(near, key=lambda rows: (units % rows > 0, abs(math.log(rows / fitting))))


def _strip(axes: "Axes", layer: LayerAreas, rows: int, top: float, tall: float) -> None:
    """The units fill columns of `rows` cells, from top to bottom and from left to right."""
    columns = -(-layer.units // rows)
    numbers = np.full(rows * columns, -1)
    numbers[: sum(layer.reserved)] = np.repeat(np.arange(len(layer.reserved)), layer.reserved)
    box = (0.0, 1.0, top + tall, top)
    paint(axes, numbers.reshape(columns, rows).T, task_colors(len(layer.reserved)), box)
    first = sum(layer.reserved)
    for count, color in ((layer.shared, MUTED), (layer.unused, LINE)):
        _fill(axes, first, first + count, rows, columns, color, top, tall)
        first += count
    if rows > 1 and ACROSS / columns > MIN_CELL:
        axes.vlines(np.arange(1, columns) / columns, top, top + tall, color=GROUND, linewidth=0.5)
        axes.hlines(top + tall * np.arange(1, rows) / rows, 0, 1, color=GROUND, linewidth=0.5)


def _fill(axes: "Axes", first: int, end: int, rows: int, columns: int, color: str, top: float, tall: float) -> None:
    """Paint units from `first` up to `end`: the rest of the first column, whole columns, and part of the last."""
    while first < end:
        column, row = divmod(first, rows)
        width = max(1, (end - first) // rows) if row == 0 else 1
        height = rows if row == 0 and end - first >= rows else min(rows - row, end - first)
        axes.barh(
            top + tall * row / rows, width / columns, tall * height / rows, column / columns, align="edge", color=color
        )
        first += width * height


def _labels(axes: "Axes", layer: LayerAreas, middle: float, *, two_lines: bool, tasks: bool) -> None:
    """Names on the areas as far as there is room."""
    shades, end, free = task_colors(len(layer.reserved)), 0, -1.0
    for name, count in layer.areas:
        center, width = (end + count / 2) / layer.units * ACROSS, count / layer.units * ACROSS
        end += count
        is_task = name.startswith("task")
        number = name.removeprefix("task ")
        if two_lines and width > LETTER * len(f"{count} units"):
            text = f"{name}\n{plural(count, 'unit')}"
        elif is_task or two_lines:
            text = number
        else:
            text = f"{count} {name}"
        wide = LETTER * max(map(len, text.split("\n")))
        if (is_task and (not tasks or center - wide / 2 < free)) or (not is_task and wide > width):
            continue
        free = center + wide / 2 + LETTER * (1 if wide < width else 3)
        ground = shades[int(number) - 1] if is_task else MUTED if name == "shared" else LINE
        color = text_color(ground) if is_task else GROUND if name == "shared" else INK
        size, box = (
            8 if two_lines else 7,
            {"boxstyle": "square,pad=0.1", "color": ground} if two_lines and wide < width else None,
        )
        axes.text(center / ACROSS, middle, text, color=color, size=size, ha="center", va="center", bbox=box)
