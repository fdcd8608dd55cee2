"""What several pictures draw and say alike: coloured areas, letters that can be read on them, counts in words."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from spacenet.utils.extras import require_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DARK, BRIGHT = "#101418", "#fdfdfd"
"""Letters on areas whose colour is the same on a light and on a dark page: no marks, they stay what they are."""

MANY = 12
"""More numbers than these are too many to hear."""


def letters_on(colour: Any) -> str:
    """Dark letters on a bright colour, bright ones on a dark colour."""
    red, green, blue = require_extra("report", "report", "matplotlib.colors").to_rgb(colour)
    return DARK if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else BRIGHT


def paint(axes: "Axes", numbers: Any, colours: Sequence[str], extent: tuple[float, float, float, float]) -> None:
    """Fill left, right, bottom, top with cells of the colours with these numbers; -1 leaves a cell as it is.

    It is one bitmap, however many cells there are.
    """
    shades = require_extra("report", "report", "matplotlib.colors").to_rgba_array([*colours, "none"])
    axes.imshow(shades[np.asarray(numbers)], extent=extent, aspect="auto", interpolation="none")


def some_of(count: int, most: int) -> list[int]:
    """At most so many of the numbers below `count`, evenly chosen, the first and the last among them."""
    return sorted({round(place) for place in np.linspace(0, count - 1, min(count, most))})


def half_of(counts: Any) -> int:
    """How few units hold half of all connections, the fullest first."""
    running = np.sort(np.asarray(counts))[::-1].cumsum()
    return int(np.searchsorted(running, running[-1] / 2)) + 1 if running[-1] else 0


def listed(numbers: Sequence[str]) -> str:
    """Numbers of tasks one after the other, for a text; of many only the first and the last ones."""
    return ", ".join(numbers if len(numbers) <= MANY else [*numbers[: MANY // 2], "…", *numbers[-MANY // 2 :]])


def words(count: int, thing: str) -> str:
    """1 task, 1,000 tasks."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"
