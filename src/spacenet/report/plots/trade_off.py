"""What accuracy costs: ACC against the memory that is kept, and against the time of training."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from spacenet.experiments.comparison import REFERENCE, MeanStd
from spacenet.report.comparison_data import ComparisonFacts
from spacenet.report.plots.labels import Box, label_places
from spacenet.report.plots.plot import INK, MUTED, Plot, new_figure
from spacenet.report.plots.strategies import BOUND, leaders, marks
from spacenet.report.tables import bytes_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TOP = 105.0
"""Of the axis of ACC, in %."""
ROOM = (410.0, 205.0)
"""About how large the axes get, in points: labels are placed in it."""
LETTER, LINE_HEIGHT = 5.3, 11.0
"""About how large text is, in points."""


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
    """Costs are multiples of the reference method's; otherwise bytes or seconds."""
    points: tuple[Point, ...]
    several: bool
    """Whether any method ran with several seeds, so that there is a spread."""
    without_old_data: tuple[str, ...]
    with_old_data: tuple[str, ...]

    def said(self, method: str, joined: str) -> str:
        """Accuracy and cost of a method in words."""
        point = next(point for point in self.points if point.method == method)
        return f"{point.acc.mean:.0f} % {joined} {self.cost_text(point.cost.mean)}"

    def cost_text(self, cost: float) -> str:
        if self.kind == "memory":
            return bytes_text(cost)
        return f"{cost:.2g} × {REFERENCE}'s time" if self.relative else f"{cost:.3g} s"


def memory_data(facts: ComparisonFacts) -> TradeOffData:
    """What is kept from task to task: the network, and what a method keeps besides."""
    costs = {name: MeanStd.of([run["bytes_kept"] for run in runs]) for name, runs in facts.runs.items()}
    return _data("memory", False, facts, costs)


def time_data(facts: ComparisonFacts) -> TradeOffData:
    """The time of training and evaluation, as multiples of the reference's where it took part."""
    times = {name: [float(run["seconds"]) for run in runs] for name, runs in facts.runs.items()}
    relative = REFERENCE in times
    unit = MeanStd.of(times[REFERENCE]).mean if relative else 1.0
    return _data("time", relative, facts, {name: MeanStd.of([t / unit for t in each]) for name, each in times.items()})


def _data(
    kind: Literal["memory", "time"], relative: bool, facts: ComparisonFacts, costs: Mapping[str, MeanStd]
) -> TradeOffData:
    points = [Point(row.method, row.strategy, row.acc, costs[row.method]) for row in facts.rows]
    points.sort(key=lambda point: -point.acc.mean)
    without, keeping = leaders(facts.rows)
    several = any(row.seeds > 1 for row in facts.rows)
    return TradeOffData(kind, relative, tuple(points), several, tuple(without), tuple(keeping))


def trade_off_picture(data: TradeOffData) -> Plot | None:
    """A point for each method; nothing to see with a single one."""
    if len(data.points) < 2:
        return None
    each = "; ".join(f"{p.method} {p.acc.mean:.1f} % with {data.cost_text(p.cost.mean)}" for p in data.points)
    cost = "memory kept" if data.kind == "memory" else "training time"
    return Plot(
        f"accuracy-and-{data.kind}",
        _title(data),
        f"Points: the accuracy over all tasks in the end (ACC) of each method against its {cost}. {each}.",
        lambda: _draw(data),
    )


def _title(data: TradeOffData) -> str:
    """The best method that keeps no old data, and the next; then what old data buys."""
    joined = "with" if data.kind == "memory" else "in"
    without, keeping = data.without_old_data, data.with_old_data
    best, *others = [*without, *keeping]
    parts = [f"{best} reaches {data.said(best, joined)}"]
    if without and others and others[0] in without:
        parts.append(f"the next without old data is {others[0]} with {data.said(others[0], 'and')}")
    if keeping and keeping[0] != best:
        parts.append(f"with old data {keeping[0]} reaches {data.said(keeping[0], joined)}")
    return "; ".join(parts)


def _draw(data: TradeOffData) -> "Figure":
    figure = new_figure(3.9)
    axes = figure.subplots()
    costs = [point.cost for point in data.points]
    smallest, largest = max(min(cost.mean for cost in costs), 1e-9), max(cost.mean + cost.sd for cost in costs)
    log = data.kind == "memory" or largest / smallest > 10
    low, high = (smallest / 1.6, max(largest, smallest) * 1.6) if log else (0.0, 1.15 * largest)
    axes.set_xscale("log" if log else "linear")
    axes.set_xlim(low, high)
    axes.set_ylim(0, TOP)
    for strategy, (colour, shape) in marks(point.strategy for point in data.points).items():
        group = [point for point in data.points if point.strategy == strategy]
        bound = strategy == BOUND  # hollow, so that what lies below it is seen
        below, above = [min(p.cost.sd, 0.9 * p.cost.mean) for p in group], [p.cost.sd for p in group]
        axes.errorbar(
            [point.cost.mean for point in group],
            [point.acc.mean for point in group],
            xerr=[below, above] if data.several else None,
            yerr=[point.acc.sd for point in group] if data.several else None,
            fmt=shape,
            color=colour,
            markerfacecolor="none" if bound else colour,
            ms=9 if bound else 6.5,
            mew=1.5 if bound else 0.5,
            lw=1.2,
            label=strategy.lower(),
        )
    _name(axes, data, low, high)
    _dress(axes, data, low, high)
    return figure


def _name(axes: "Axes", data: TradeOffData, low: float, high: float) -> None:
    """A label beside each point, with a thin line where it had to move away."""
    scale = math.log if low else float

    def across(cost: float) -> float:
        return ROOM[0] * (scale(max(cost, low)) - scale(low)) / (scale(high) - scale(low))

    up = ROOM[1] / TOP
    places = [(across(point.cost.mean), up * point.acc.mean) for point in data.points]
    bars: list[Box] = []
    for point, (x, y) in zip(data.points, places, strict=True):
        cost, sd = point.cost.mean, point.cost.sd
        bars.append((across(cost - sd), y - 1, across(cost + sd), y + 1))
        bars.append((x - 1, y - up * point.acc.sd, x + 1, y + up * point.acc.sd))
    texts = [f"{point.method} {point.acc.mean:.0f} %" for point in data.points]
    widths = [LETTER * len(text) for text in texts]
    line = {"arrowstyle": "-", "color": MUTED, "lw": 0.6, "shrinkA": 0, "shrinkB": 4}
    corners = label_places(places, [(width, LINE_HEIGHT) for width in widths], ROOM, bars)
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


def _dress(axes: "Axes", data: TradeOffData, low: float, high: float) -> None:
    if data.kind == "memory":
        axes.set_xticks(_powers(low, high), [bytes_text(power).replace(".0 ", " ") for power in _powers(low, high)])
        axes.set_xlabel("memory kept from task to task: network and what is kept besides (logarithmic)")
    else:
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:.6g}")
        unit = f"as a multiple of {REFERENCE}'s" if data.relative else "in seconds"
        axes.set_xlabel(f"time of training and evaluation {unit}{' (logarithmic)' if low else ''}")
        if low:
            axes.set_xticks(_steps(low, high), [f"{step:g}" for step in _steps(low, high)])
    axes.minorticks_off()
    std = ", lines: standard deviation over seeds" if data.several else ""
    axes.set_ylabel(f"ACC in %{std}")
    axes.grid()
    axes.set_axisbelow(True)
    better = "smaller" if data.kind == "memory" else "faster"
    axes.set_title(f"↖ better and {better}", loc="left", fontsize=9, color=MUTED)
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=5, columnspacing=1.2, handletextpad=0.2, borderpad=0.2)


def _steps(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten, as far as the axis goes."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [step for power in powers for step in (10.0**power, 2 * 10.0**power, 5 * 10.0**power) if low <= step <= high]


def _powers(low: float, high: float) -> Sequence[int]:
    """Round sizes within limits: powers of two, as many as there is room for."""
    every = [number for number in range(64) if low <= 2**number <= high]
    step = max(1, math.ceil(len(every) / 7))
    return [2**number for number in every if number % step == 0]
