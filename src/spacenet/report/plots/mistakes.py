"""Samples that are predicted wrongly with the highest confidence: images side by side."""

from typing import Any

import numpy as np

from spacenet.model.scores import Mistakes
from spacenet.report.evaluation_tables import mistakes_table
from spacenet.report.plots import drawing
from spacenet.report.plots.plot import LINE, WIDTH, Figure, Plot, new_figure
from spacenet.utils.text import plural

COLUMNS = 8
MAX_SHOWN = 24
LETTERS = 12  # of a label below an image


def mistakes_plot(mistakes: Mistakes) -> Plot | None:
    """A gallery, the most confident mistake first; None without mistakes, and for samples that are not images."""
    if mistakes.inputs is None or mistakes.inputs.ndim < 3:
        return None
    worst, count = mistakes.each[0], len(mistakes.each[:MAX_SHOWN])
    title = f"The most confident mistake: {worst.true} is predicted as {worst.predicted} ({worst.confidence:.1f} %)"
    each = drawing.abbreviate([f"{m.true} as {m.predicted} ({m.confidence:.1f} %)" for m in mistakes.each])
    text = f"Images of {plural(count, 'sample')} that are predicted wrongly, the most confident first: {each}."
    return Plot("mistakes", title, text, lambda: _draw(mistakes), mistakes_table(mistakes))


def _draw(mistakes: Mistakes) -> Figure:
    assert mistakes.inputs is not None
    images = mistakes.inputs[:MAX_SHOWN]
    if images.ndim == 4:
        images = np.moveaxis(images, 1, -1)
    high, wide = images.shape[1:3]
    columns = min(COLUMNS, len(images))
    rows = -(-len(images) // columns)
    figure = new_figure(rows * min(2.4, (WIDTH - 0.4) / COLUMNS * high / wide + 0.55) + 0.25)
    panels: Any = figure.subplots(rows, COLUMNS, squeeze=False)
    for axes in panels.flat:
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
    for axes, image, mistake in zip(panels.flat, images, mistakes.each, strict=False):
        axes.imshow(image, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
        axes.spines[:].set(visible=True, color=LINE)
        true, predicted = (drawing.clip_name(name, LETTERS) for name in (mistake.true, mistake.predicted))
        axes.set_xlabel(f"{true}\n→ {predicted}", size=8)
        axes.set_title(f"{mistake.confidence:.0f} %", size=8)
    below = "below each image: its class → the predicted class; above: the probability of that"
    figure.supxlabel(below, size=9)
    return figure
