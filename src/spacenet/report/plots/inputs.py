"""How many connections leave each pixel, as an image for each task (a figure of the paper)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spacenet.experiments.run import RunData
from spacenet.report.plots.drawing import abbreviate, draw_color_bar, evenly_chosen, units_with_half
from spacenet.report.plots.plot import COLORMAP, LINE, WIDTH, Figure, Plot, new_figure
from spacenet.report.tables import shorten_labels

LETTER = 0.07  # approximate width of a letter in inches
MAX_TASKS = 8  # tasks that have room side by side


def connections_per_pixel(run: RunData | None) -> NDArray[np.int64] | None:
    """(task, height, width); None without a model that divides its network, and unless every input is a pixel."""
    if run is None or run.model is None or not run.model.method.divides_network:
        return None
    shape, ledger, tasks = run.model.input_shape, run.model.method.ledger, len(run.model.tasks)
    shape, pixels = shape[1:] if len(shape) == 3 and shape[0] == 1 else shape, ledger.blueprint.input
    if len(shape) != 2 or not pixels.size == shape[0] * shape[1] > 1:
        return None
    held = [ledger.connections[link.name] for link in ledger.blueprint.links if link.source == pixels.name]
    places = np.concatenate([each.owner.numpy().astype(np.int64) * pixels.size + each.source.numpy() for each in held])
    return np.bincount(places, minlength=tasks * pixels.size).reshape(tasks, *shape)


def inputs_plot(run: RunData, beside: RunData | None = None) -> Plot | None:
    """A row of images for the run, and one for another run to compare with; None unless every input is a pixel."""
    counts, other = connections_per_pixel(run), connections_per_pixel(beside)
    if counts is None:
        return None
    methods, found = [run.metrics["method"]], [counts]
    if beside is not None and other is not None and other.shape[1:] == counts.shape[1:]:
        methods, found = [*methods, beside.metrics["method"]], [counts, other]
    shown = evenly_chosen(min(map(len, found)), MAX_TASKS)
    images = np.stack([each[shown] for each in found])
    halves = [[units_with_half(image.ravel()) for image in row] for row in images]
    pixels = counts[0].size
    title = f"Half of task 1's connections leave from {halves[0][0]} of {pixels} pixels"
    title += f", with {methods[1]} from {halves[1][0]}" if len(methods) > 1 else ""
    parts = (
        f"{method}: {abbreviate([f'task {task + 1} {half}' for task, half in zip(shown, row, strict=True)])}"
        for method, row in zip(methods, halves, strict=True)
    )
    text = f"Images of the connections that leave each of {pixels} pixels. Pixels with half of them: "
    names = {f"task {task + 1}": shorten_labels(run.labels[task]) for task in shown}
    return Plot("inputs", title, f"{text}{'; '.join(parts)}.", lambda: _draw(images, methods, names))


def _draw(images: NDArray[np.int64], methods: Sequence[str], tasks: dict[str, str]) -> Figure:
    """Rows are methods, columns are tasks, given with their classes."""
    rows, columns, high, wide = images.shape
    side = min(1.9, (WIDTH - 1.3) / columns)
    figure = new_figure(rows * (side * high / wide + 0.12) + 0.45)
    panels: Any = figure.subplots(rows, columns, squeeze=False)
    scale: dict[str, Any] = {"cmap": COLORMAP, "vmin": 0, "vmax": images.max(), "interpolation": "none"}
    for axes, counts in zip(panels.flat, images.reshape(-1, high, wide), strict=True):
        image = axes.imshow(counts, **scale)
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set(visible=True, color=LINE)
    for axes, (task, classes) in zip(panels[0], tasks.items(), strict=True):
        axes.set_title(task + (f"\n({classes})" if len(classes) * LETTER < side else ""), size=8)
    for axes, method in zip(panels[:, 0], methods if rows > 1 else (), strict=False):
        axes.set_ylabel(method)
    draw_color_bar(panels, image, "connections\nper pixel", 15 * rows, pad=0.015)
    return figure
