"""Names beside what they name: texts for tasks and figures, and places where labels do not cover each other."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import isotonic_regression

CLOSE = 5.0
"""Percentages that lie less far apart are told with a digit more."""


def task_text(number: int, labels: Sequence[str], room: int = 14) -> str:
    """A task with its classes, if they are short: task 2 (2, 3)."""
    classes = classes_text(labels)
    return f"task {number + 1} ({classes})" if len(classes) <= room else f"task {number + 1}"


def classes_text(labels: Sequence[str]) -> str:
    """All of a few classes, or the first and the last of many."""
    return ", ".join(labels) if len(labels) <= 3 else f"{labels[0]} … {labels[-1]}"


def tasks_text(percentages: NDArray[np.float64], most: int = 20) -> str:
    """A figure of each task, or of many the lowest and the highest."""
    texts = [f"task {number + 1} {value:.1f} %" for number, value in enumerate(percentages)]
    if len(texts) <= most:
        return ", ".join(texts)
    return f"from {texts[int(np.nanargmin(percentages))]} to {texts[int(np.nanargmax(percentages))]}"


def share_text(percent: float, *, fine: bool = False) -> str:
    """A percentage for people: no digits that mean nothing, and never 0 or 100 for what is only close."""
    if 0 < percent < 0.05:
        return "under 0.1 %"
    if 99.94 < percent < 100:
        return "over 99.9 %"
    return f"{percent:.{int(fine or 0 < percent < 1 or 99 < percent < 100)}f} %"


def share_texts(percents: Sequence[float]) -> list[str]:
    """Percentages beside each other: where they lie close together, all with a digit that tells them apart."""
    close = max(percents) - min(percents) < CLOSE
    return [share_text(percent, fine=close) for percent in percents]


def spread_out(places: Sequence[float], gap: float, low: float, high: float) -> NDArray[np.float64]:
    """Move places apart until neighbours are a gap away, as little as possible, within bounds if there is room.

    Distances to the k-th place of an even ladder have to rise with k: that is an isotonic regression.
    """
    values = np.asarray(places, float)
    order = np.argsort(values, kind="stable")
    ladder = gap * np.arange(len(values))
    top = max(high - (ladder[-1] if len(ladder) else 0.0), low)
    moved = np.empty_like(values)
    moved[order] = isotonic_regression(values[order] - ladder, y_min=low, y_max=top) + ladder
    return moved


Box = tuple[float, float, float, float]
"""Left, bottom, right, top."""


def label_places(
    points: Sequence[tuple[float, float]],
    sizes: Sequence[tuple[float, float]],
    room: tuple[float, float],
    obstacles: Sequence[Box] = (),
) -> list[tuple[float, float]]:
    """Where to put the left bottom corner of a label of each point, beside it or a little further away.

    Points, sizes, room and obstacles share a unit. A label avoids obstacles, all points, and the labels before it.
    """
    taken: list[Box] = [*obstacles, *((x - 4, y - 4, x + 4, y + 4) for x, y in points)]
    found = []
    for (x, y), (width, height) in zip(points, sizes, strict=True):
        beside = [
            (x + dx if right else x - dx - width, y - height / 2 + dy) for dx, dy in _AROUND for right in (True, False)
        ]
        boxes = [(left, bottom, left + width, bottom + height) for left, bottom in beside]
        inside = [b for b in boxes if b[0] >= 0 and b[1] >= 0 and b[2] <= room[0] and b[3] <= room[1]] or boxes[:1]
        best = min(inside, key=lambda box: sum(_overlap(box, other) for other in taken))  # the first without any
        taken.append(best)
        found.append(best[:2])
    return found


_AROUND = sorted(((dx, dy) for dx in (7, 16, 30, 50) for dy in range(-60, 61, 6)), key=lambda by: math.hypot(*by))
"""How far a label may stand from its point, the nearest first."""


def _overlap(a: Box, b: Box) -> float:
    return max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
