"""Texts in plots, and positions where labels do not overlap."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spacenet.report.tables import shorten_labels

CLOSE = 5.0  # percentages that differ by less get one more digit
MAX_LISTED = 12  # parts of a text alternative that are listed; of more, the first and the last ones
_OFFSETS = sorted(((dx, dy) for dx in (7, 16, 30, 50) for dy in range(-60, 61, 6)), key=lambda by: math.hypot(*by))
"""How far a label may be from its point in points, the nearest first."""
Box = tuple[float, float, float, float]
"""Left, bottom, right, top."""


def task_text(number: int, labels: Sequence[str], room: int = 14) -> str:
    """A task with its classes, if they are short: task 2 (2, 3)."""
    classes = shorten_labels(labels)
    return f"task {number + 1} ({classes})" if len(classes) <= room else f"task {number + 1}"


def tasks_text(percentages: NDArray[np.float64], most: int = 20) -> str:
    """The value of each task, or of many tasks the lowest and the highest."""
    texts = [f"task {number + 1} {value:.1f} %" for number, value in enumerate(percentages)]
    if len(texts) <= most:
        return ", ".join(texts)
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

    Minus an even ladder, sorted positions must not decrease: an isotonic regression.
    """
    from sklearn.isotonic import isotonic_regression

    values = np.asarray(places, float)
    order, ladder = np.argsort(values, kind="stable"), gap * np.arange(len(values))
    moved = np.empty_like(values)
    moved[order] = ladder + isotonic_regression(values[order] - ladder, y_min=low, y_max=max(high - ladder[-1], low))
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
        corners = [
            (x + dx if right else x - dx - width, y - height / 2 + dy) for dx, dy in _OFFSETS for right in (True, False)
        ]
        boxes = [(left, bottom, left + width, bottom + height) for left, bottom in corners]
        inside = [b for b in boxes if b[0] >= 0 and b[1] >= 0 and b[2] <= room[0] and b[3] <= room[1]] or boxes[:1]
        best = min(inside, key=lambda box: sum(_overlap(box, other) for other in taken))  # the first without overlap
        taken.append(best)
        found.append(best[:2])
    return found


def _overlap(a: Box, b: Box) -> float:
    return max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
