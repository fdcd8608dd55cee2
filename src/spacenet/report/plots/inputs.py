"""How many connections leave each pixel, as an image for each task (a figure of the paper)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spacenet.experiments.run import RunData
from spacenet.report.plots.drawing import abbreviate, draw_color_bar, evenly_chosen, units_with_half
from spacenet.report.plots.plot import COLORMAP, LINE, WIDTH, Figure, Plot, new_figure
from spacenet.report.tables import shorten_labels

LETTER = 0.07  # approximate width of a letter in inches
MAX_TASKS = 8  # tasks that have room side by side


@dataclass(frozen=True)
class InputsData:
    """The number of connections from each pixel."""

    methods: tuple[str, ...]
    tasks: tuple[int, ...]  # the tasks that are shown, from 1
    classes: tuple[str, ...]  # the classes of each, as text
    counts: NDArray[np.int64]  # (methods, tasks, height, width)


def inputs_data(run: RunData, beside: RunData | None = None) -> InputsData | None:
    """Of a run, and of another one to compare with; None unless every input is a pixel."""
    shape = _image_shape(run)
    if shape is None:
        return None
    runs = [run, beside] if beside is not None and _image_shape(beside) == shape else [run]
    shown = evenly_chosen(min(len(each.labels) for each in runs), MAX_TASKS)
    return InputsData(
        tuple(str(each.metrics["method"]) for each in runs),
        tuple(task + 1 for task in shown),
        tuple(shorten_labels(run.labels[task]) for task in shown),
        np.stack([[_count(each, task).reshape(shape) for task in shown] for each in runs]),
    )


def _image_shape(run: RunData) -> tuple[int, ...] | None:
    """Height and width, if the units of the input are pixels."""
    if run.model is None:
        return None
    shape, units = run.model.input_shape, run.model.method.blueprint.input.size
    shape = shape[1:] if len(shape) == 3 and shape[0] == 1 else shape
    return shape if len(shape) == 2 and units == shape[0] * shape[1] > 1 else None


def _count(run: RunData, task: int) -> NDArray[np.int64]:
    """The connections of a task (from 0) by input unit."""
    assert run.model is not None
    ledger = run.model.method.ledger
    units = ledger.blueprint.input
    held = [ledger.connections[link.name] for link in ledger.blueprint.links if link.source == units.name]
    sources = np.concatenate([each.source[each.owner == task].numpy() for each in held])
    return np.bincount(sources, minlength=units.size)


def inputs_plot(data: InputsData) -> Plot:
    """A row of images for each method."""
    halves = [[units_with_half(image.ravel()) for image in row] for row in data.counts]
    pixels = data.counts[0, 0].size
    title = f"Half of task {data.tasks[0]}'s connections leave from {halves[0][0]} of {pixels} pixels"
    title += f", with {data.methods[1]} from {halves[1][0]}" if len(data.methods) > 1 else ""
    parts = (
        f"{method}: {abbreviate([f'task {task} {half}' for task, half in zip(data.tasks, row, strict=True)])}"
        for method, row in zip(data.methods, halves, strict=True)
    )
    text = f"Images of the connections that leave each of {pixels} pixels. Pixels with half of them: "
    return Plot("inputs", title, f"{text}{'; '.join(parts)}.", lambda: _draw(data))


def _draw(data: InputsData) -> Figure:
    rows, columns, high, wide = data.counts.shape
    side = min(1.9, (WIDTH - 1.3) / columns)
    figure = new_figure(rows * (side * high / wide + 0.12) + 0.45)
    panels: Any = figure.subplots(rows, columns, squeeze=False)
    scale: dict[str, Any] = {"cmap": COLORMAP, "vmin": 0, "vmax": data.counts.max(), "interpolation": "none"}
    for axes, counts in zip(panels.flat, data.counts.reshape(-1, high, wide), strict=True):
        image = axes.imshow(counts, **scale)
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set(visible=True, color=LINE)
    for axes, task, classes in zip(panels[0], data.tasks, data.classes, strict=True):
        axes.set_title(f"task {task}" + (f"\n({classes})" if len(classes) * LETTER < side else ""), size=8)
    for axes, method in zip(panels[:, 0], data.methods if rows > 1 else (), strict=False):
        axes.set_ylabel(method)
    draw_color_bar(panels, image, "connections\nper pixel", 15 * rows, pad=0.015)
    return figure
