"""Heat maps of percentages, with a text in each cell as far as there is room."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spacenet.report.plots.areas import letters_on
from spacenet.report.plots.plot import AMOUNT
from spacenet.utils.extras import require_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_NUMBERS = 20
"""Rows or columns up to which numbers can be read."""
Percentages = NDArray[np.float64]
"""Rows and columns; not a number where there is nothing to show."""


def numbers(values: Percentages, digits: int = 0, zeros: bool = True) -> list[list[str]]:
    """The values as texts; without `zeros`, nothing for those that would read 0."""
    return [[_number(float(value), digits, zeros) for value in row] for row in values]


def _number(value: float, digits: int, zeros: bool) -> str:
    text = "" if np.isnan(value) else f"{value:.{digits}f}"
    return text if text and (zeros or float(text)) else ""


def draw_cells(
    axes: "Axes", values: Percentages, texts: Sequence[Sequence[str]] | None, small_matters: bool = False
) -> Any:
    """Colours from 0 to 100, and the texts on them; returns the image, for a scale.

    Where small values matter, colours follow the square root: 4 % can then be told from 0.
    """
    norm = require_extra("report", "report", "matplotlib.colors").PowerNorm(0.5 if small_matters else 1, 0, 100)
    image = axes.imshow(np.ma.masked_invalid(values), cmap=AMOUNT, norm=norm, interpolation="none")
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    size = 9 if max(values.shape) <= 10 else 7
    for row, line in enumerate(texts or ()):
        for column, text in enumerate(line):
            if text:
                colour = letters_on(image.cmap(norm(values[row, column]))[:3])
                axes.text(column, row, text, ha="center", va="center", color=colour, fontsize=size)
    return image


def draw_scale(axes: "Axes", image: Any, label: str) -> None:
    """What the colours mean, where no numbers say it."""
    scale = axes.figure.colorbar(image, ax=axes, shrink=0.7, aspect=25, pad=0.02)
    scale.outline.set_visible(False)
    scale.set_label(label)


def name_ticks(axis: Any, names: Sequence[str], turned: bool = False) -> None:
    """Write a name at each place, or at as many as there is room for."""
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100, 500, 1000) if len(names) <= MOST_NUMBERS * step)
    places = range(0, len(names), step)
    axis.set_ticks(list(places), [names[place] for place in places])
    if turned:
        require_extra("report", "report", "matplotlib.artist").setp(axis.get_ticklabels(), rotation=90)
