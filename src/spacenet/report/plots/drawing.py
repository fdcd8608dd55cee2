"""What several plots share: heat maps, painted cells, texts of tasks and shares, and labels that do not overlap."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spacenet.report.plots.plot import COLORMAP, Axes, import_matplotlib
from spacenet.report.tables import shorten_labels

DARK, BRIGHT = "#101418", "#fdfdfd"  # text on areas whose color is the same on a light and on a dark page
MAX_NUMBERED = 20  # rows or columns up to which numbers in cells are readable
CENTERED: dict[str, Any] = {"ha": "center", "va": "center"}
Percentages = NDArray[np.float64]  # rows and columns; NaN where there is nothing to show
CLOSE = 5.0  # percentages that differ by less get one more digit
FEW_TASKS = 6  # up to which tasks are named with their classes
MAX_NAME = 16  # letters of a class's name
MAX_LISTED = 12  # parts of a text alternative that are listed; of more, the first and the last ones
_OFFSETS = sorted(((dx, dy) for dx in (7, 16, 30, 50) for dy in range(-60, 61, 6)), key=lambda by: math.hypot(*by))
"""How far a label may be from its point in points, the nearest first."""
Box = tuple[float, float, float, float]  # left, bottom, right, top


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


def cell_texts(values: Percentages, digits: int = 0, stds: Percentages | None = None) -> list[list[str]]:
    """The values as texts, ± their standard deviations if there are any; NaN stands for none."""
    texts = [["" if np.isnan(value) else f"{value:.{digits}f}" for value in row] for row in values]
    if stds is None:
        return texts
    signs = [["" if np.isnan(std) else f" ± {std:.{digits}f}" for std in row] for row in stds]
    return [[text + sign for text, sign in zip(*row, strict=True)] for row in zip(texts, signs, strict=True)]


def draw_cells(
    axes: Axes,
    values: Percentages,
    texts: Sequence[Sequence[str]] | None,
    label: str = "",
    beside: Axes | None = None,
    gamma: float = 1.0,
) -> None:
    """A heat map from 0 to 100 with texts in its cells, or without texts with a labeled color bar.

    The color bar is to the right of `beside`, if that is given. With `gamma` below 1, small values are easier to see.
    """
    norm = import_matplotlib("matplotlib.colors").PowerNorm(gamma, 0, 100)
    image = axes.imshow(np.ma.masked_invalid(values), COLORMAP, norm, interpolation="none", aspect="auto")
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    size = 9 if max(values.shape) <= 10 else 7
    for (row, column), value in np.ndenumerate(values):
        if texts and texts[row][column]:
            color = text_color(image.cmap(norm(value))[:3])
            axes.text(column, row, texts[row][column], color=color, fontsize=size, **CENTERED)
    if texts is None:
        draw_color_bar(beside or axes, image, label, shrink=0.7, pad=0.02)


def draw_color_bar(axes: Any, image: Any, label: str, aspect: float = 25, **options: Any) -> Any:
    """The scale of the colors beside the axes."""
    bar = image.figure.colorbar(image, ax=axes, label=label, aspect=aspect, **options)
    bar.outline.set_visible(False)
    return bar


def name_ticks(axis: Any, names: Sequence[str], rotation: float = 0) -> None:
    """A name at each position, or at as many as there is room for."""
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100, 500, 1000) if len(names) <= MAX_NUMBERED * step)
    axis.set_ticks(range(0, len(names), step), names[::step], rotation=rotation)


def clip_name(name: str, most: int = MAX_NAME) -> str:
    """A name, or the beginning of a long one."""
    return name if len(name) <= most else f"{name[: most - 1]}…"


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


def task_text(number: int, labels: Sequence[str], room: int = 14) -> str:
    """A task with its classes, if they are short: task 2 (2, 3)."""
    classes = shorten_labels(labels)
    return f"task {number + 1} ({classes})" if len(classes) <= room else f"task {number + 1}"


def task_names(labels: Sequence[Sequence[str]], room: int = 14) -> list[str]:
    """Few tasks with their classes, if those are short; of many the numbers."""
    few = len(labels) <= FEW_TASKS
    return [task_text(number, each, room) if few else str(number + 1) for number, each in enumerate(labels)]


def tasks_text(percentages: Sequence[float] | NDArray[np.float64], most: int = 20) -> str:
    """The value of each task, or of many tasks the lowest and the highest. NaN, which was not measured, is left out."""
    texts = [f"task {number + 1} {value:.1f} %" for number, value in enumerate(percentages)]
    if len(texts) <= most:
        return ", ".join(text for text, value in zip(texts, percentages, strict=True) if not np.isnan(value))
    return f"from {texts[int(np.nanargmin(percentages))]} to {texts[int(np.nanargmax(percentages))]}"


def abbreviate(parts: Sequence[str]) -> str:
    """A list for a text alternative; of many parts only the first and the last ones."""
    half = MAX_LISTED // 2
    return ", ".join(parts if len(parts) <= MAX_LISTED else [*parts[:half], "…", *parts[-half:]])


def share_text(percent: float, *, fine: bool = False) -> str:
    """A percentage without digits that mean nothing, and never 0 or 100 for what is only close to it."""
    if 0 < percent < 0.05:
        return "under 0.1 %"
    if 99.94 < percent < 100:
        return "over 99.9 %"
    return f"{percent:.{int(fine or 0 < percent < 1 or 99 < percent < 100)}f} %"


def share_texts(percents: Sequence[float]) -> list[str]:
    """Percentages side by side: if they are close to each other, all with one more digit."""
    close = max(percents) - min(percents) < CLOSE
    return [share_text(percent, fine=close) for percent in percents]


def spread_labels(places: Sequence[float], gap: float, low: float, high: float) -> NDArray[np.float64]:
    """Move positions until neighbors are a gap apart, as little as possible, within bounds if there is room.

    Minus an even ladder, sorted positions must not decrease: an isotonic regression, here by its max-min formula.
    """
    values, count = np.asarray(places, float), len(places)
    order, ladder = np.argsort(values, kind="stable"), gap * np.arange(count)
    sums = np.concatenate([[0.0], np.cumsum(values[order] - ladder)])
    lengths = np.arange(1, count + 1) - np.arange(count)[:, None]  # of the runs from each row to each column
    means = (sums[None, 1:] - sums[:-1, None]) / np.maximum(lengths, 1)
    fitted = np.array([means[: i + 1, i:].min(axis=1).max() for i in range(count)])
    moved = np.empty_like(values)
    moved[order] = ladder + np.clip(fitted, low, max(high - ladder[-1], low))
    return moved


def place_labels(
    points: Sequence[tuple[float, float]],
    sizes: Sequence[tuple[float, float]],
    room: tuple[float, float],
    obstacles: Sequence[Box] = (),
) -> list[tuple[float, float]]:
    """The lower left corner of a label for each point, beside it or a little further away.

    Points, sizes, room and obstacles share a unit. A label avoids obstacles, all points, and the labels before it.
    """
    taken: list[Box] = [*obstacles, *((x - 4, y - 4, x + 4, y + 4) for x, y in points)]
    found = []
    for (x, y), (width, height) in zip(points, sizes, strict=True):
        corners = [(left, y - height / 2 + dy) for dx, dy in _OFFSETS for left in (x + dx, x - dx - width)]
        boxes = [(left, bottom, left + width, bottom + height) for left, bottom in corners]
        inside = [b for b in boxes if b[0] >= 0 and b[1] >= 0 and b[2] <= room[0] and b[3] <= room[1]] or boxes[:1]
        best = min(inside, key=lambda box: sum(_overlap(box, other) for other in taken))  # the first without overlap
        taken.append(best)
        found.append(best[:2])
    return found


def _overlap(a: Box, b: Box) -> float:
    return max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
