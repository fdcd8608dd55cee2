"""What several plots draw: cells in colors, heat maps of percentages, and text that is readable on them."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spacenet.report.plots.plot import COLORMAP, Axes, import_matplotlib

DARK, BRIGHT = "#101418", "#fdfdfd"  # text on areas whose color is the same on a light and on a dark page
MAX_NUMBERED = 20  # rows or columns up to which numbers in cells are readable
CENTERED: dict[str, Any] = {"ha": "center", "va": "center"}
Percentages = NDArray[np.float64]
"""Rows and columns; NaN where there is nothing to show."""


def text_color(background: Any) -> str:
    """Dark text on a bright color, bright text on a dark one."""
    red, green, blue = import_matplotlib("matplotlib.colors").to_rgb(background)
    return DARK if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else BRIGHT


def paint(axes: Axes, numbers: Any, colors: Sequence[str], extent: tuple[float, float, float, float]) -> None:
    """Fill left, right, bottom, top with cells in the colors with these numbers; -1 leaves a cell transparent.

    It is one bitmap, however many cells there are.
    """
    shades = import_matplotlib("matplotlib.colors").to_rgba_array([*colors, "none"])
    axes.imshow(shades[np.asarray(numbers)], extent=extent, aspect="auto", interpolation="none")


def cell_texts(values: Percentages, digits: int = 0, zeros: bool = True) -> list[list[str]]:
    """The values as texts; without `zeros`, those that would read 0 stay empty."""
    rows = [["" if np.isnan(value) else f"{value:.{digits}f}" for value in row] for row in values]
    return rows if zeros else [[text if text and float(text) else "" for text in row] for row in rows]


def draw_cells(
    axes: Axes,
    values: Percentages,
    texts: Sequence[Sequence[str]] | None,
    square: bool = False,
    square_root: bool = False,
) -> Any:
    """A heat map from 0 to 100 with texts in its cells; returns the image, for a color bar.

    With `square_root`, small values are easier to see: 4 % differs from 0.
    """
    norm = import_matplotlib("matplotlib.colors").PowerNorm(0.5 if square_root else 1, 0, 100)
    aspect: Any = "equal" if square else "auto"
    image = axes.imshow(np.ma.masked_invalid(values), cmap=COLORMAP, norm=norm, interpolation="none", aspect=aspect)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    size = 9 if max(values.shape) <= 10 else 7
    for row, line in enumerate(texts or ()):
        for column, text in enumerate(line):
            if text:
                color = text_color(image.cmap(norm(values[row, column]))[:3])
                axes.text(column, row, text, color=color, fontsize=size, **CENTERED)
    return image


def draw_color_bar(axes: Any, image: Any, label: str, aspect: float = 25, **options: Any) -> Any:
    """The scale of the colors beside the axes."""
    bar = image.figure.colorbar(image, ax=axes, label=label, aspect=aspect, **options)
    bar.outline.set_visible(False)
    return bar


def name_ticks(axis: Any, names: Sequence[str], rotation: float = 0) -> None:
    """A name at each position, or at as many as there is room for."""
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100, 500, 1000) if len(names) <= MAX_NUMBERED * step)
    axis.set_ticks(range(0, len(names), step), names[::step], rotation=rotation)


def round_ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten within these limits, for a logarithmic axis."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [tick for power in powers for tick in (10.0**power, 2 * 10.0**power, 5 * 10.0**power) if low <= tick <= high]


def evenly_chosen(count: int, most: int) -> list[int]:
    """At most `most` of the numbers below `count`, evenly spaced, with the first and the last."""
    return sorted({round(place) for place in np.linspace(0, count - 1, min(count, most))})


def units_with_half(counts: Any) -> int:
    """How few units hold half of all connections."""
    running = np.sort(np.asarray(counts))[::-1].cumsum()
    return int(np.searchsorted(running, running[-1] / 2)) + 1 if running[-1] else 0
