"""ACC against the memory that is kept, and against the training time."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from spacenet.experiments.comparison import REFERENCE, ComparisonData
from spacenet.experiments.metrics import MeanStd
from spacenet.report.plots.drawing import round_ticks
from spacenet.report.plots.labels import Box, place_labels
from spacenet.report.plots.plot import INK, MUTED, Plot, new_figure
from spacenet.report.plots.ranking import BOUND, rank_methods, strategy_markers
from spacenet.utils.text import format_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TOP = 105.0
"""End of the ACC axis, in %."""
AXES_SIZE = (410.0, 205.0)
"""Approximate size of the axes in points; labels are placed within it."""
LETTER, LINE_HEIGHT = 5.3, 11.0
"""Approximate size of text in points."""


@dataclass(frozen=True)
class Point:
    """One method."""

    method: str
    strategy: str
    acc: MeanStd
    cost: MeanStd


@dataclass(frozen=True)
class TradeOffData:
    """All methods, the most accurate first."""

    kind: Literal["memory", "time"]
    relative: bool
    """Whether times are multiples of the reference method's; otherwise they are seconds."""
    points: tuple[Point, ...]
    several: bool
    """Whether any method ran with several seeds."""
    without_samples: tuple[str, ...]
    """Methods that store no old samples, the most accurate first."""
    with_samples: tuple[str, ...]

    def describe(self, method: str, preposition: str) -> str:
        """Accuracy and cost of a method in words."""
        point = next(point for point in self.points if point.method == method)
        return f"{point.acc.mean:.0f} % {preposition} {self.cost_text(point.cost.mean)}"

    def cost_text(self, cost: float) -> str:
        if self.kind == "memory":
            return format_bytes(cost)
        return f"{cost:.2g} × {REFERENCE}'s time" if self.relative else f"{cost:.3g} s"


def memory_data(comparison: ComparisonData) -> TradeOffData:
    """What is kept from task to task: the network, and what the method stores besides it."""
    costs = {name: MeanStd.of([run.metrics["bytes_kept"] for run in runs]) for name, runs in comparison.runs.items()}
    return _data("memory", False, comparison, costs)


def time_data(comparison: ComparisonData) -> TradeOffData:
    """The time of training and evaluation, relative to the reference method if it was compared too."""
    times = {name: [float(run.metrics["seconds"]) for run in runs] for name, runs in comparison.runs.items()}
    relative = REFERENCE in times
    unit = MeanStd.of(times[REFERENCE]).mean if relative else 1.0
    return _data(
        "time", relative, comparison, {name: MeanStd.of([t / unit for t in each]) for name, each in times.items()}
    )


def _data(
    kind: Literal["memory", "time"], relative: bool, comparison: ComparisonData, costs: Mapping[str, MeanStd]
) -> TradeOffData:
    points = [Point(row.method, row.strategy, row.acc, costs[row.method]) for row in comparison.rows]
    points.sort(key=lambda point: -point.acc.mean)
    without, keeping = rank_methods(comparison.rows)
    several = any(row.seeds > 1 for row in comparison.rows)
    return TradeOffData(kind, relative, tuple(points), several, tuple(without), tuple(keeping))


def trade_off_plot(data: TradeOffData) -> Plot | None:
    """A point for each method; None for a single one."""
    if len(data.points) < 2:
        return None
    each = "; ".join(f"{p.method} {p.acc.mean:.1f} % with {data.cost_text(p.cost.mean)}" for p in data.points)
    cost = "memory kept" if data.kind == "memory" else "training time"
    return Plot(
        f"accuracy-and-{data.kind}",
        _title(data),
        f"Scatter plot of each method's accuracy over all tasks after the last one (ACC) against its {cost}. {each}.",
        lambda: _draw(data),
    )


def _title(data: TradeOffData) -> str:
    """The best methods without stored samples, then the best with them."""
    preposition = "with" if data.kind == "memory" else "in"
    without, keeping = data.without_samples, data.with_samples
    best, *others = [*without, *keeping]
    parts = [f"{best} reaches {data.describe(best, preposition)}"]
    if without and others and others[0] in without:
        parts.append(f"the next without stored samples is {others[0]} with {data.describe(others[0], 'and')}")
    if keeping and keeping[0] != best:
        parts.append(f"with stored samples {keeping[0]} reaches {data.describe(keeping[0], preposition)}")
    return "; ".join(parts)


def _draw(data: TradeOffData) -> "Figure":
    figure = new_figure(3.9)
    axes = figure.subplots()
    costs = [point.cost for point in data.points]
    smallest, largest = max(min(cost.mean for cost in costs), 1e-9), max(cost.mean + cost.std for cost in costs)
    log = data.kind == "memory" or largest / smallest > 10
    low, high = (smallest / 1.6, max(largest, smallest) * 1.6) if log else (0.0, 1.15 * largest)
    axes.set_xscale("log" if log else "linear")
    axes.set_xlim(low, high)
    axes.set_ylim(0, TOP)
    for strategy, (color, shape) in strategy_markers(point.strategy for point in data.points).items():
        group = [point for point in data.points if point.strategy == strategy]
        bound = strategy == BOUND  # hollow, so that markers below it are visible
        below, above = [min(p.cost.std, 0.9 * p.cost.mean) for p in group], [p.cost.std for p in group]
        axes.errorbar(
            [point.cost.mean for point in group],
            [point.acc.mean for point in group],
            xerr=[below, above] if data.several else None,
            yerr=[point.acc.std for point in group] if data.several else None,
            fmt=shape,
            color=color,
            markerfacecolor="none" if bound else color,
            ms=9 if bound else 6.5,
            mew=1.5 if bound else 0.5,
            lw=1.2,
            label=strategy.lower(),
        )
    _label_points(axes, data, low, high)
    _style_axes(axes, data, low, high)
    return figure


def _label_points(axes: "Axes", data: TradeOffData, low: float, high: float) -> None:
    """A label beside each point, with a thin line if it had to move away."""
    scale = math.log if low else float

    def across(cost: float) -> float:
        return AXES_SIZE[0] * (scale(max(cost, low)) - scale(low)) / (scale(high) - scale(low))

    up = AXES_SIZE[1] / TOP
    places = [(across(point.cost.mean), up * point.acc.mean) for point in data.points]
    bars: list[Box] = []
    for point, (x, y) in zip(data.points, places, strict=True):
        cost, std = point.cost.mean, point.cost.std
        bars.append((across(cost - std), y - 1, across(cost + std), y + 1))
        bars.append((x - 1, y - up * point.acc.std, x + 1, y + up * point.acc.std))
    texts = [f"{point.method} {point.acc.mean:.0f} %" for point in data.points]
    widths = [LETTER * len(text) for text in texts]
    line = {"arrowstyle": "-", "color": MUTED, "lw": 0.6, "shrinkA": 0, "shrinkB": 4}
    corners = place_labels(places, [(width, LINE_HEIGHT) for width in widths], AXES_SIZE, bars)
    for point, (x, y), (left, bottom), text, width in zip(data.points, places, corners, texts, widths, strict=True):
        right, rise = left > x, bottom + LINE_HEIGHT / 2 - y
        away = left - x if right else left + width - x
        axes.annotate(
            text,
            (point.cost.mean, point.acc.mean),
            (away, rise),
            textcoords="offset points",
            ha="left" if right else "right",
            va="center",
            fontsize=8.5,
            fontweight="bold" if point.method == "spacenet" else "normal",
            color=INK,
            arrowprops=line | {"relpos": (0 if right else 1, 0.5)} if abs(rise) > 9 or abs(away) > 10 else None,
        )


def _style_axes(axes: "Axes", data: TradeOffData, low: float, high: float) -> None:
    if data.kind == "memory":
        axes.set_xticks(
            _byte_ticks(low, high), [format_bytes(power).replace(".0 ", " ") for power in _byte_ticks(low, high)]
        )
        axes.set_xlabel("memory kept from task to task, network included (log scale)")
    else:
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:.6g}")
        unit = f"as a multiple of {REFERENCE}'s" if data.relative else "in seconds"
        axes.set_xlabel(f"time of training and evaluation {unit}{' (log scale)' if low else ''}")
        if low:
            axes.set_xticks(round_ticks(low, high), [f"{tick:g}" for tick in round_ticks(low, high)])
    axes.minorticks_off()
    std = ", error bars: std over seeds" if data.several else ""
    axes.set_ylabel(f"ACC in %{std}")
    axes.grid()
    axes.set_axisbelow(True)
    better = "smaller" if data.kind == "memory" else "faster"
    axes.set_title(f"↖ better and {better}", loc="left", fontsize=9, color=MUTED)
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=5, columnspacing=1.2, handletextpad=0.2, borderpad=0.2)


def _byte_ticks(low: float, high: float) -> Sequence[int]:
    """Powers of two within limits, as many as there is room for."""
    every = [number for number in range(64) if low <= 2**number <= high]
    step = max(1, math.ceil(len(every) / 7))
    return [2**number for number in every if number % step == 0]
