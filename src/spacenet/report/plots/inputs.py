"""How many connections leave each pixel, as an image for each task (a figure of the paper)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spacenet.experiments.run import RunData
from spacenet.report.plots.drawing import evenly_chosen, units_with_half
from spacenet.report.plots.labels import abbreviate
from spacenet.report.plots.plot import COLORMAP, LINE, WIDTH, Plot, new_figure
from spacenet.report.tables import shorten_labels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LETTER = 0.07
"""Approximate width of a letter in inches."""
MAX_TASKS = 8
"""Tasks that have room side by side."""


@dataclass(frozen=True)
class InputsData:
    """The number of connections from each pixel."""

    methods: tuple[str, ...]
    tasks: tuple[int, ...]
    """The tasks that are shown, from 1."""
    classes: tuple[str, ...]
    """The classes of each, as text."""
    counts: NDArray[np.int64]
    """(methods, tasks, height, width)."""


def inputs_data(run: RunData, beside: RunData | None = None) -> InputsData | None:
    """Of a run, and of another one to compare with; None unless every input is a pixel."""
    shape, learned = _image(run), len(run.labels)
    if shape is None:
        return None
    runs = [run]
    if beside is not None and _image(beside) == shape:
        runs.append(beside)
        learned = min(learned, len(beside.labels))
    shown = evenly_chosen(learned, MAX_TASKS)
    counts = np.stack([[_of_task(run, task).reshape(shape) for task in shown] for run in runs])
    return InputsData(
        tuple(str(run.metrics["method"]) for run in runs),
        tuple(task + 1 for task in shown),
        tuple(shorten_labels(run.labels[task]) for task in shown),
        counts,
    )


def _image(run: RunData) -> tuple[int, int] | None:
    """Height and width, if the units of the input are pixels."""
    if run.model is None:
        return None
    shape, blueprint = run.model.input_shape, run.model.method.blueprint
    if len(shape) == 3 and shape[0] == 1:
        shape = shape[1:]
    return (shape[0], shape[1]) if len(shape) == 2 and blueprint.input.size == shape[0] * shape[1] > 1 else None


def _of_task(run: RunData, task: int) -> NDArray[np.int64]:
    assert run.model is not None
    ledger = run.model.method.ledger
    name, counts = ledger.blueprint.input.name, np.zeros(ledger.blueprint.input.size, np.int64)
    for link in ledger.blueprint.links:
        if link.source == name:
            held = ledger.connections[link.name]
            counts += np.bincount(held.source[held.owner == task].numpy(), minlength=len(counts))
    return counts


def inputs_plot(data: InputsData) -> Plot:
    """A row of images for each method."""
    halves = [[units_with_half(image.ravel()) for image in row] for row in data.counts]
    pixels = data.counts[0, 0].size
    first = data.tasks[0]
    title = f"Half of task {first}'s connections leave from {halves[0][0]} of {pixels} pixels"
    if len(data.methods) > 1:
        title += f", with {data.methods[1]} from {halves[1][0]}"
    parts = (
        f"{method}: {abbreviate([f'task {task} {half}' for task, half in zip(data.tasks, row, strict=True)])}"
        for method, row in zip(data.methods, halves, strict=True)
    )
    text = (
        f"Images of the connections that leave each of {pixels} pixels. Pixels with half of them: {'; '.join(parts)}."
    )
    return Plot("inputs", title, text, lambda: _draw(data))


def _draw(data: InputsData) -> "Figure":
    rows, columns, high, wide = data.counts.shape
    side = min(1.9, (WIDTH - 1.3) / columns)
    figure = new_figure(rows * (side * high / wide + 0.12) + 0.45)
    panels: Any = figure.subplots(rows, columns, squeeze=False)
    for row, method in enumerate(data.methods):
        for column, axes in enumerate(panels[row]):
            drawn = axes.imshow(
                data.counts[row, column], cmap=COLORMAP, vmin=0, vmax=data.counts.max(), interpolation="none"
            )
            axes.set(xticks=[], yticks=[])
            for spine in axes.spines.values():
                spine.set(visible=True, color=LINE)
            if row == 0:
                classes = f"\n({data.classes[column]})" if len(data.classes[column]) * LETTER < side else ""
                axes.set_title(f"task {data.tasks[column]}{classes}", size=8)
        if rows > 1:
            panels[row, 0].set_ylabel(method)
    bar = figure.colorbar(drawn, ax=panels, aspect=15 * rows, pad=0.015, label="connections\nper pixel")
    bar.outline.set_visible(False)
    return figure
