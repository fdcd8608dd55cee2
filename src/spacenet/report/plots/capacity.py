"""The capacity map: which task has reserved each hidden unit, and how many are left."""

import math
from collections.abc import Sequence

import numpy as np

from spacenet.experiments.run import RunData
from spacenet.model.capacity import LayerAreas, layer_areas
from spacenet.report.plots.drawing import CENTERED, abbreviate, paint, text_color
from spacenet.report.plots.plot import GROUND, INK, LINE, MUTED, Axes, Figure, Plot, new_axes, task_colors
from spacenet.report.tables import capacity_text, layers_table
from spacenet.utils.text import plural

MAX_WITH_CELLS = 6  # layers up to which each unit is drawn as a cell; more layers are drawn as bars
STRIP, BAR, BETWEEN = 0.62, 0.16, 0.22  # inches: a layer with cells, one without, and between layers with cells
ACROSS, LETTER = 5.9, 0.063  # approximate widths of a layer and of a letter in inches
MIN_CELL = 0.04  # inches; narrower cells have no lines between them, which would hide them


def capacity_plot(run: RunData) -> Plot | None:
    """A strip for each layer, its units sorted by task; None without a model that divides its network among tasks."""
    if run.model is None or not run.model.method.divides_network:
        return None
    layers, tasks_left = layer_areas(run.model), None if run.model.method.needs_old_data else run.model.space_left()
    parts = (f"{layer.name}: {abbreviate([f'{name} {count}' for name, count in layer.areas])}" for layer in layers)
    text = f"Map of the units of each hidden layer by the task that reserved them. {'; '.join(parts)}."
    title = capacity_title(layers, tasks_left)
    return Plot("capacity-map", title, text, lambda: draw_capacity(layers), layers_table(run))


def capacity_title(layers: Sequence[LayerAreas], tasks_left: int | None) -> str:
    """How much is reserved, and how many more tasks like the last one fit (None: the method needs all old data)."""
    tasks = len(layers[0].reserved)
    found = {(sum(layer.reserved), layer.units) for layer in layers}
    if len(found) == 1:
        [(reserved, units)] = found
        what = f"{reserved:,} of {units:,} units"
    else:
        shares = [round(100 * reserved / units) for reserved, units in found]
        low = f"{min(shares)} to " if min(shares) < max(shares) else ""
        what = f"{low}{max(shares)} % of the units"
    where = "in each layer" if len(layers) > 1 else f"of {layers[0].name}"
    left = "" if tasks_left is None else f"; {capacity_text(tasks_left)}"
    return f"{plural(tasks, 'task')} {'reserves' if tasks == 1 else 'reserve'} {what} {where}{left}"


def draw_capacity(layers: Sequence[LayerAreas]) -> Figure:
    cells, count = len(layers) <= MAX_WITH_CELLS, len(layers)
    tall, pitch = (STRIP, STRIP + BETWEEN) if cells else (BAR, 1.3 * BAR)
    figure, axes = new_axes(pitch * count + 0.65)
    middles = [number * pitch + tall / 2 for number in range(count)]
    for layer, middle in zip(layers, middles, strict=True):
        _strip(axes, layer, _rows(layer.units) if cells else 1, middle - tall / 2, tall)
        _labels(axes, layer, middle, two_lines=cells, tasks=cells or layer is layers[0])
    axes.set(xlim=(0, 1), ylim=(pitch * (count - 1) + tall, 0), xticks=[])
    units = "\n{:,} units" if cells else " ({:,})"
    axes.set_yticks(middles, [layer.name + units.format(layer.units) for layer in layers])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_xlabel(f"units sorted by task; {'each cell is a unit' if cells else 'number of units in parentheses'}")
    if any(layer.shared for layer in layers):
        axes.bar(0, 0, color=MUTED, label="shared: in use, and open to later tasks")
    if any(layer.unused for layer in layers):
        axes.bar(0, 0, color=LINE, label="unused")
    if axes.get_legend_handles_labels()[0]:
        figure.legend(loc="outside lower center", ncols=2, fontsize=8, handlelength=1, handleheight=1, columnspacing=2)
    return figure


def _rows(units: int) -> int:
    """Rows that make cells about square, without a gap at the end if possible."""
    fitting = (units * STRIP / ACROSS) ** 0.5
    near = range(max(1, round(fitting * 0.75)), round(fitting * 1.35) + 2)
    return min(near, key=lambda rows: (units % rows > 0, abs(math.log(rows / fitting))))


def _strip(axes: Axes, layer: LayerAreas, rows: int, top: float, tall: float) -> None:
    """The units fill columns of `rows` cells, from top to bottom and from left to right."""
    columns, first = -(-layer.units // rows), sum(layer.reserved)
    numbers = np.full(rows * columns, -1)
    numbers[:first] = np.repeat(np.arange(len(layer.reserved)), layer.reserved)
    colors = task_colors(len(layer.reserved))
    paint(axes, numbers.reshape(columns, rows).T, colors, (0.0, 1.0, top + tall, top))
    for end, color in ((first + layer.shared, MUTED), (layer.units, LINE)):
        while first < end:  # the rest of the first column, whole columns, and part of the last
            column, row = divmod(first, rows)
            width = max(1, (end - first) // rows) if row == 0 else 1
            height = rows if row == 0 and end - first >= rows else min(rows - row, end - first)
            y, thick = top + tall * row / rows, tall * height / rows
            axes.barh(y, width / columns, thick, column / columns, align="edge", color=color)
            first += width * height
    if rows > 1 and ACROSS / columns > MIN_CELL:
        axes.vlines(np.arange(1, columns) / columns, top, top + tall, color=GROUND, linewidth=0.5)
        axes.hlines(top + tall * np.arange(1, rows) / rows, 0, 1, color=GROUND, linewidth=0.5)


def _labels(axes: Axes, layer: LayerAreas, middle: float, *, two_lines: bool, tasks: bool) -> None:
    """Names on the areas as far as there is room."""
    shades = {f"task {number}": shade for number, shade in enumerate(task_colors(len(layer.reserved)), 1)}
    grounds, end, free = {**shades, "shared": MUTED, "unused": LINE}, 0, -1.0
    for name, count in layer.areas:
        center, width = (end + count / 2) / layer.units * ACROSS, count / layer.units * ACROSS
        end += count
        text = name.removeprefix("task ") if name in shades or two_lines else f"{count} {name}"
        if two_lines and width > LETTER * len(f"{count} units"):
            text = f"{name}\n{plural(count, 'unit')}"
        wide = LETTER * max(map(len, text.split("\n")))
        if (not tasks or center - wide / 2 < free) if name in shades else wide > width:
            continue
        free = center + wide / 2 + LETTER * (1 if wide < width else 3)
        ground = grounds[name]
        color = {"shared": GROUND, "unused": INK}.get(name) or text_color(ground)
        box = {"boxstyle": "square,pad=0.1", "color": ground} if two_lines and wide < width else None
        axes.text(center / ACROSS, middle, text, color=color, size=8 if two_lines else 7, bbox=box, **CENTERED)
