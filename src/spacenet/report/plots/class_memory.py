"""Class statistics and what they are worth: the accuracy with fewer directions of each class's Gaussians."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from spacenet.experiments.analysis import Truncated
from spacenet.experiments.run import RunData
from spacenet.report.plots.drawing import round_ticks
from spacenet.report.plots.plot import INK, LINE, PALETTE, Axes, Figure, Plot, new_axes
from spacenet.report.table import Table
from spacenet.utils.text import plural

NEAR = 0.5  # percentage points; a loss up to this is called enough
MIN_SPAN = 1.0  # percentage points that the ACC axis covers at least, so that small differences look small
MARGIN = 1.4  # the space beyond the first and the last point of the logarithmic axis, as a factor


def enough_directions(points: Sequence[Truncated]) -> Truncated:
    """The fewest that are nearly as accurate as what the run kept, the last point."""
    return next(point for point in points if point.acc >= points[-1].acc - NEAR)


def class_memory_plot(run: RunData) -> Plot | None:
    """A point for each number of directions; None for methods without class statistics."""
    points = run.analysis.truncated
    if len(points) < 2:
        return None
    before, used, enough = points[-2], points[-1], enough_directions(points)
    other = f"{enough.floats:,} are enough for {enough.acc:.1f} %"
    other = f"with {before.floats:,} it would be {before.acc:.1f} %" if enough is used else other
    each = "; ".join(f"{_directions(p)}: {p.floats:,} values, {p.acc:.1f} %" for p in points)
    text = (
        "Line of the accuracy over all tasks after the last one (ACC) against the values stored per class, from no "
        f"direction of each Gaussian to all. {each}. The last is what the run kept."
    )
    title = f"{used.acc:.1f} % with {used.floats:,} values per class; {other}"
    rows = [[f"{point.directions}", f"{point.floats:,}", f"{point.acc:.2f}"] for point in points]
    table = Table("ACC with fewer directions", ["directions", "values per class", "ACC %"], rows)
    return Plot("accuracy-against-memory", title, text, lambda: _draw(points), table)


def _directions(point: Truncated) -> str:
    return plural(point.directions, "direction") if point.directions else "means only"


def _draw(points: Sequence[Truncated]) -> Figure:
    figure, axes = new_axes(3.6)
    x, y = [point.floats for point in points], [point.acc for point in points]
    span = max(max(y) - min(y), MIN_SPAN)
    axes.set(xscale="log", xlim=(x[0] / MARGIN, x[-1] * MARGIN))
    axes.set(ylim=(max(min(y) - 0.15 * span, 0.0), max(y) + 0.18 * span), ylabel="ACC in %")
    axes.axhline(y[-1], color=LINE, lw=1.0, zorder=0)
    axes.plot(x, y, color=PALETTE[0], lw=1.6, marker="o", ms=5.5)
    axes.plot(x[-1:], y[-1:], color=PALETTE[5], marker="o", ms=9, ls="none")
    _label_points(axes, points, 0.03 * span)
    ticks = round_ticks(*axes.get_xlim())
    axes.set_xticks(ticks, [f"{tick:,.0f}" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel("values stored per class (log scale); labels: directions of each Gaussian")
    return figure


def _label_points(axes: Axes, points: Sequence[Truncated], visible: float) -> None:
    """Label each point with its directions: below where the line rises, above where it visibly falls."""

    def label(point: Truncated, text: str, above: bool, x: float, y: float, **style: Any) -> None:
        style |= {"textcoords": "offset points", "va": "bottom" if above else "top", "color": INK}
        axes.annotate(text, (point.floats, point.acc), (x, y if above else -y), **style)

    used, falls = points[-1], [after.acc < before.acc - visible for before, after in pairwise(points)]
    for point, fall in zip(points, falls, strict=False):
        text = _directions(point) if point.directions < 2 else str(point.directions)
        label(point, text + (f": {point.acc:.1f} %" if point is enough_directions(points) else ""), fall, 5, 5)
    label(used, f"{_directions(used)}: {used.acc:.1f} % (this run)", not falls[-1], 6, 9, ha="right", weight="bold")
