"""Class statistics and what they are worth: the accuracy with fewer directions of each class's Gaussians."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spacenet.experiments.analysis import Truncated
from spacenet.experiments.run import RunData
from spacenet.report.plots.drawing import round_ticks
from spacenet.report.plots.plot import INK, LINE, PALETTE, Plot, new_figure
from spacenet.utils.text import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NEAR = 0.5
"""Percentage points; a loss up to this is called enough."""
MIN_SPAN = 1.0
"""Percentage points that the ACC axis covers at least, so that small differences look small."""
MARGIN = 1.4
"""The space beyond the first and the last point of the logarithmic axis, as a factor."""


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
        """The fewest directions that are nearly as accurate as what the run kept."""
        return next(point for point in self.points if point.acc >= self.used.acc - NEAR)

    @property
    def span(self) -> float:
        """Percentage points between the lowest and the highest accuracy."""
        accuracies = [point.acc for point in self.points]
        return max(max(accuracies) - min(accuracies), MIN_SPAN)

    def falls(self, point: Truncated, other: Truncated) -> bool:
        """Whether the line visibly goes down from one point to the other."""
        return other.acc < point.acc - 0.03 * self.span


def class_memory_data(run: RunData) -> ClassMemoryData | None:
    """What the run recorded; None for methods without class statistics."""
    points = run.analysis.truncated
    return ClassMemoryData(points) if len(points) > 1 else None


def class_memory_plot(data: ClassMemoryData) -> Plot:
    """A point for each number of directions."""
    each = "; ".join(f"{_directions(p)}: {p.floats:,} values, {p.acc:.1f} %" for p in data.points)
    return Plot(
        "accuracy-against-memory",
        _title(data),
        "Line of the accuracy over all tasks after the last one (ACC) against the values stored per class, from no "
        f"direction of each Gaussian to all. {each}. The last is what the run kept.",
        lambda: _draw(data),
    )


def _title(data: ClassMemoryData) -> str:
    used, enough = data.used, data.enough
    kept = f"{used.acc:.1f} % with {used.floats:,} values per class"
    if enough is used:
        before = data.points[-2]
        return f"{kept}; with {before.floats:,} it would be {before.acc:.1f} %"
    return f"{kept}; {enough.floats:,} are enough for {enough.acc:.1f} %"


def _directions(point: Truncated) -> str:
    return plural(point.directions, "direction") if point.directions else "means only"


def _draw(data: ClassMemoryData) -> "Figure":
    figure = new_figure(3.6)
    axes = figure.subplots()
    x, y = [point.floats for point in data.points], [point.acc for point in data.points]
    span = data.span
    axes.set_xscale("log")
    axes.set_xlim(x[0] / MARGIN, x[-1] * MARGIN)
    axes.set_ylim(max(min(y) - 0.15 * span, 0.0), max(y) + 0.18 * span)
    axes.axhline(data.used.acc, color=LINE, lw=1.0, zorder=0)
    axes.plot(x, y, color=PALETTE[0], lw=1.6, marker="o", ms=5.5)
    axes.plot(x[-1:], y[-1:], color=PALETTE[5], marker="o", ms=9, ls="none")
    _label_points(axes, data)
    ticks = round_ticks(*axes.get_xlim())
    axes.set_xticks(ticks, [f"{tick:,.0f}" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel("values stored per class (log scale); labels: directions of each Gaussian")
    axes.set_ylabel("ACC in %")
    return figure


def _label_points(axes: "Axes", data: ClassMemoryData) -> None:
    """Label each point with its directions: below where the line rises, above where it falls."""
    for point, other in zip(data.points, data.points[1:], strict=False):
        text = _directions(point) if point.directions < 2 else str(point.directions)
        text += f": {point.acc:.1f} %" if point is data.enough else ""
        falls = data.falls(point, other)
        _label(axes, point, text, (5, 5 if falls else -5), "bottom" if falls else "top")
    used, falls = data.used, data.falls(*data.points[-2:])
    text = f"{_directions(used)}: {used.acc:.1f} % (this run)"
    _label(axes, used, text, (6, -9 if falls else 9), "top" if falls else "bottom", ha="right", fontweight="bold")


def _label(axes: "Axes", point: Truncated, text: str, offset: tuple[float, float], up: str, **style: Any) -> None:
    style = {"ha": "left", "va": up, "color": INK, **style}
    axes.annotate(text, (point.floats, point.acc), offset, textcoords="offset points", **style)
