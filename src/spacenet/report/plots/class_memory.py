"""What is kept of each class, and what it buys: accuracy if fewer directions of its Gaussians had been kept."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spacenet.experiments.analysis import Truncated
from spacenet.report.plots.plot import INK, LINE, TASKS, Plot, new_figure
from spacenet.report.run_data import RunFacts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NEAR = 0.5
"""So many percentage points less are called enough."""
LEAST_SPAN = 1.0
"""Percentage points that the axis of ACC covers at least: what hardly differs is to look like it."""
MARGIN = 1.4
"""What lies beyond the first and the last point of the logarithmic axis, as a factor."""
TICKS = (1, 2, 5)


@dataclass(frozen=True)
class ClassMemoryData:
    """From the fewest directions to all that the run kept."""

    points: tuple[Truncated, ...]

    @property
    def used(self) -> Truncated:
        """What the run kept."""
        return self.points[-1]

    @property
    def enough(self) -> Truncated:
        """The least that is nearly as accurate as what the run kept."""
        return next(point for point in self.points if point.acc >= self.used.acc - NEAR)

    @property
    def span(self) -> float:
        """Percentage points between the worst and the best."""
        accuracies = [point.acc for point in self.points]
        return max(max(accuracies) - min(accuracies), LEAST_SPAN)

    def falls(self, point: Truncated, other: Truncated) -> bool:
        """Whether the line goes down from one to the other, so that one sees it."""
        return other.acc < point.acc - 0.03 * self.span


def class_memory_data(facts: RunFacts) -> ClassMemoryData | None:
    """What the run noted; None where its method describes no classes."""
    points = facts.analysis.truncate
    return ClassMemoryData(points) if len(points) > 1 else None


def class_memory_picture(data: ClassMemoryData) -> Plot:
    """A point for each number of directions."""
    each = "; ".join(f"{_directions(p)}: {p.floats:,} numbers, {p.acc:.1f} %" for p in data.points)
    return Plot(
        "accuracy-against-memory",
        _title(data),
        "Line: the accuracy over all tasks in the end (ACC) against the numbers kept of each class, from no direction "
        f"of each Gaussian to all. {each}. The last is what the run kept.",
        lambda: _draw(data),
    )


def _title(data: ClassMemoryData) -> str:
    used, enough = data.used, data.enough
    said = f"{used.acc:.1f} % with {used.floats:,} numbers for each class"
    if enough is used:
        before = data.points[-2]
        return f"{said}; with {before.floats:,} it would be {before.acc:.1f} %"
    return f"{said}; {enough.floats:,} are enough for {enough.acc:.1f} %"


def _directions(point: Truncated) -> str:
    if not point.directions:
        return "means only"
    return "1 direction" if point.directions == 1 else f"{point.directions} directions"


def _draw(data: ClassMemoryData) -> "Figure":
    figure = new_figure(3.6)
    axes = figure.subplots()
    x, y = [point.floats for point in data.points], [point.acc for point in data.points]
    span = data.span
    axes.set_xscale("log")
    axes.set_xlim(x[0] / MARGIN, x[-1] * MARGIN)
    axes.set_ylim(max(min(y) - 0.15 * span, 0.0), max(y) + 0.18 * span)
    axes.axhline(data.used.acc, color=LINE, lw=1.0, zorder=0)
    axes.plot(x, y, color=TASKS[0], lw=1.6, marker="o", ms=5.5)
    axes.plot(x[-1:], y[-1:], color=TASKS[5], marker="o", ms=9, ls="none")
    _name(axes, data)
    ticks = _ticks(*axes.get_xlim())
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel("numbers kept of each class (logarithmic); at the points: directions of each Gaussian")
    axes.set_ylabel("accuracy over all tasks (ACC) in %")
    return figure


def _name(axes: "Axes", data: ClassMemoryData) -> None:
    """How many directions each point has, and what the run kept: below where the line rises, above where it falls."""
    for point, other in zip(data.points, data.points[1:], strict=False):
        text = _directions(point) if point.directions < 2 else str(point.directions)
        text += f": {point.acc:.1f} %" if point is data.enough else ""
        falls = data.falls(point, other)
        _label(axes, point, text, (5, 5 if falls else -5), "bottom" if falls else "top")
    used, falls = data.used, data.falls(*data.points[-2:])
    text = f"{_directions(used)}: {used.acc:.1f} % (this run)"
    _label(axes, used, text, (6, -9 if falls else 9), "top" if falls else "bottom", "right", "bold")


def _label(
    axes: "Axes",
    point: Truncated,
    text: str,
    away: tuple[float, float],
    up: str,
    side: str = "left",
    weight: str = "normal",
) -> None:
    axes.annotate(
        text,
        (point.floats, point.acc),
        away,
        textcoords="offset points",
        ha=side,
        va=up,
        fontweight=weight,
        color=INK,
    )


def _ticks(low: float, high: float) -> list[int]:
    """1, 2, 5, 10, … between two numbers."""
    exponents = range(int(math.log10(max(low, 1.0))), math.ceil(math.log10(high)) + 1)
    return [step * 10**e for e in exponents for step in TICKS if low <= step * 10**e <= high]
