"""Methods side by side: ranked by accuracy and by parameters, and ACC against memory and against time."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from spacenet.experiments.comparison import REFERENCE, ComparisonData, Row
from spacenet.report.plots.drawing import Box, place_labels, round_ticks
from spacenet.report.plots.plot import INK, MUTED, Axes, Figure, Plot, new_axes, task_colors
from spacenet.utils.text import MeanStd, format_bytes

BOUND = "Bound"
"""The strategy of methods that only show the lowest and highest accuracy to expect."""
STRATEGIES = ("Architectural", "Rehearsal", "Regularization", BOUND, "Statistical")
MARKERS = "os^DvPX*"
TOP = 105.0  # end of the ACC axis, in %
AXES_SIZE = (410.0, 205.0)  # approximate size of the axes in points; labels are placed within it
LETTER, LINE_HEIGHT = 5.3, 11.0  # approximate size of text in points
MAX_TICKS = 7


def strategy_markers(strategies: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Color and marker of each strategy, the same in every plot; registered methods may bring new strategies."""
    present = set(strategies)
    known = [*STRATEGIES, *sorted(present - set(STRATEGIES))]
    looks = zip(known, task_colors(len(known)), range(len(known)), strict=True)
    return {name: (color, MARKERS[number % len(MARKERS)]) for name, color, number in looks if name in present}


def rank_methods(rows: Sequence[Row]) -> tuple[list[str], list[str]]:
    """Methods that store no old samples, and those that do, the most accurate first; without the bounds."""
    ranked = sorted([row for row in rows if row.strategy != BOUND] or rows, key=lambda row: -row.acc.mean)
    return [row.method for row in ranked if not row.images], [row.method for row in ranked if row.images]


@dataclass(frozen=True)
class Bar:
    """The value of one method, with its standard deviation if there are several seeds."""

    method: str
    strategy: str
    value: float
    text: str
    std: float | None = None


@dataclass(frozen=True)
class RankingData:
    """The bars, the best first."""

    kind: Literal["acc", "parameters"]
    bars: tuple[Bar, ...]


def acc_data(comparison: ComparisonData) -> RankingData:
    """The mean accuracy over all tasks after the last one, highest first."""
    bars = []
    for row in sorted(comparison.rows, key=lambda row: -row.acc.mean):
        std = row.acc.std if row.seeds > 1 else None
        text = f"{row.acc.mean:.1f} %" if std is None else f"{row.acc.mean:.1f} ± {std:.1f} %"
        bars.append(Bar(row.method, row.strategy, row.acc.mean, text, std))
    return RankingData("acc", tuple(bars))


def parameters_data(comparison: ComparisonData) -> RankingData:
    """The number of parameters after the last task, fewest first."""
    rows = sorted(comparison.rows, key=lambda row: row.parameters)
    bars = (Bar(row.method, row.strategy, row.parameters, f"{row.parameters:,.0f}") for row in rows)
    return RankingData("parameters", tuple(bars))


def ranking_plot(data: RankingData) -> Plot | None:
    """A bar for each method; None for a single one."""
    if len(data.bars) < 2:
        return None
    what, title = "number of parameters", _parameters_title
    if data.kind == "acc":
        what, title = "ACC (mean accuracy over all tasks after the last one)", _acc_title
    each = "; ".join(f"{bar.method} {bar.text}" for bar in data.bars)
    text = f"Bar chart of the {what} of each method, in order. {each}."
    return Plot(f"{data.kind}-by-method", title(data.bars), text, lambda: _draw_ranking(data))


def _acc_title(bars: Sequence[Bar]) -> str:
    best, *others = [bar for bar in bars if bar.strategy != BOUND] or bars
    title = f"{best.method} is the most accurate: {best.text}"
    title += f"; next is {others[0].method} with {others[0].text}" if others else ""
    bounds = [f"{bar.method} {bar.value:.0f} %" for bar in bars if bar.strategy == BOUND != best.strategy]
    return title + (f" (bounds: {', '.join(bounds)})" if bounds else "")


def _parameters_title(bars: Sequence[Bar]) -> str:
    least, most = bars[0], bars[-1]
    if least.value == most.value:
        return f"All methods have the same number of parameters: {least.text}"
    smallest, largest = ([bar.method for bar in bars if bar.value == end.value] for end in (least, most))
    names = " and ".join(smallest) if len(smallest) <= 2 else f"{len(smallest)} methods"
    verb = "needs" if len(smallest) == 1 else "need"
    others = f"the largest, {largest[0]}, has" if len(largest) == 1 else f"the {len(largest)} largest have"
    times = f"{most.value / max(least.value, 1):.1f} times as many"
    return f"{names} {verb} {least.text} parameters; {others} {times} ({most.text})"


def _draw_ranking(data: RankingData) -> Figure:
    count, looks = len(data.bars), strategy_markers(bar.strategy for bar in data.bars)
    figure, axes = new_axes(0.75 + 0.25 * count)
    top = max(*(bar.value + (bar.std or 0) for bar in data.bars), 1e-9)
    for place, bar in enumerate(data.bars):
        axes.barh(place, bar.value, 0.72, color=looks[bar.strategy][0])
        if bar.std is not None:
            axes.errorbar(bar.value, place, xerr=bar.std, color=INK, lw=1.2, capsize=2)
        axes.text(bar.value + (bar.std or 0) + 0.012 * top, place, bar.text, va="center")
    axes.set_yticks(range(count), [bar.method for bar in data.bars])
    for text in axes.get_yticklabels():
        text.set_fontweight("bold" if text.get_text() == "spacenet" else "normal")
    axes.tick_params(axis="y", length=0)
    axes.spines[:].set_visible(False)
    unit = "ACC in %" if data.kind == "acc" else "number of parameters after the last task"
    over_seeds = " ± standard deviation over seeds" if any(bar.std is not None for bar in data.bars) else ""
    axes.set(xlim=(0, 1.2 * top), xticks=[], ylim=(count - 0.5, -0.5), xlabel=unit + over_seeds)
    patches = [axes.barh(0, 0, color=color, label=name.lower()) for name, (color, _) in looks.items()]
    axes.legend(handles=patches, loc="lower right", bbox_to_anchor=(1, 1), ncols=5)
    return figure


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
    relative: bool  # whether times are multiples of the reference method's; otherwise they are seconds
    points: tuple[Point, ...]
    several: bool  # whether any method ran with several seeds
    without_samples: tuple[str, ...]  # methods that store no old samples, the most accurate first
    with_samples: tuple[str, ...]

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
    costs = {name: MeanStd.of([time / unit for time in each]) for name, each in times.items()}
    return _data("time", relative, comparison, costs)


def _data(
    kind: Literal["memory", "time"], relative: bool, comparison: ComparisonData, costs: Mapping[str, MeanStd]
) -> TradeOffData:
    rows = sorted(comparison.rows, key=lambda row: -row.acc.mean)
    points = tuple(Point(row.method, row.strategy, row.acc, costs[row.method]) for row in rows)
    without, keeping = map(tuple, rank_methods(rows))
    return TradeOffData(kind, relative, points, any(row.seeds > 1 for row in rows), without, keeping)


def trade_off_plot(data: TradeOffData) -> Plot | None:
    """A point for each method; None for a single one."""
    if len(data.points) < 2:
        return None
    each = "; ".join(f"{p.method} {p.acc.mean:.1f} % with {data.cost_text(p.cost.mean)}" for p in data.points)
    cost = "memory kept" if data.kind == "memory" else "training time"
    text = f"Scatter plot of each method's accuracy over all tasks after the last one (ACC) against its {cost}. {each}."
    return Plot(f"accuracy-and-{data.kind}", _trade_off_title(data), text, lambda: _draw_trade_off(data))


def _trade_off_title(data: TradeOffData) -> str:
    """The best methods without stored samples, then the best with them."""
    preposition = "with" if data.kind == "memory" else "in"
    points = {point.method: point for point in data.points}

    def describe(method: str, word: str = preposition) -> str:
        return f"{points[method].acc.mean:.0f} % {word} {data.cost_text(points[method].cost.mean)}"

    without, keeping = data.without_samples, data.with_samples
    best = (*without, *keeping)[0]
    parts = [f"{best} reaches {describe(best)}"]
    if len(without) > 1:
        parts.append(f"the next without stored samples is {without[1]} with {describe(without[1], 'and')}")
    if without and keeping:
        parts.append(f"with stored samples {keeping[0]} reaches {describe(keeping[0])}")
    return "; ".join(parts)


def _draw_trade_off(data: TradeOffData) -> Figure:
    figure, axes = new_axes(3.9)
    costs = [point.cost for point in data.points]
    smallest, largest = max(min(cost.mean for cost in costs), 1e-9), max(cost.mean + cost.std for cost in costs)
    log = data.kind == "memory" or largest / smallest > 10
    low, high = (smallest / 1.6, max(largest, smallest) * 1.6) if log else (0.0, 1.15 * largest)
    axes.set(xscale="log" if log else "linear", xlim=(low, high), ylim=(0, TOP))
    for strategy, (color, shape) in strategy_markers(point.strategy for point in data.points).items():
        group = [point for point in data.points if point.strategy == strategy]
        style: dict[str, Any] = {"ms": 6.5, "mew": 0.5}
        if strategy == BOUND:  # hollow, so that markers below it are visible
            style = {"ms": 9, "mew": 1.5, "markerfacecolor": "none"}
        if data.several:
            below, above = [min(p.cost.std, 0.9 * p.cost.mean) for p in group], [p.cost.std for p in group]
            style |= {"xerr": [below, above], "yerr": [point.acc.std for point in group]}
        x, y = [point.cost.mean for point in group], [point.acc.mean for point in group]
        axes.errorbar(x, y, fmt=shape, color=color, lw=1.2, label=strategy.lower(), **style)
    _label_points(axes, data, low, high)
    _style_axes(axes, data, low, high)
    return figure


def _label_points(axes: Axes, data: TradeOffData, low: float, high: float) -> None:
    """A label beside each point, with a thin line if it had to move away."""
    scale: Callable[[float], float] = math.log if low else float

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
    sizes = [(LETTER * len(text), LINE_HEIGHT) for text in texts]
    corners = place_labels(places, sizes, AXES_SIZE, bars)
    for point, (x, y), (left, bottom), text, size in zip(data.points, places, corners, texts, sizes, strict=True):
        right, rise = left > x, bottom + LINE_HEIGHT / 2 - y
        away = left - x if right else left + size[0] - x
        line = {"arrowstyle": "-", "color": MUTED, "lw": 0.6, "shrinkA": 0, "shrinkB": 4}
        style: dict[str, Any] = {"ha": "left" if right else "right", "va": "center", "size": 8.5, "color": INK}
        if abs(rise) > 9 or abs(away) > 10:
            style["arrowprops"] = line | {"relpos": (0 if right else 1, 0.5)}
        style["weight"] = "bold" if point.method == "spacenet" else "normal"
        axes.annotate(text, (point.cost.mean, point.acc.mean), (away, rise), textcoords="offset points", **style)


def _style_axes(axes: Axes, data: TradeOffData, low: float, high: float) -> None:
    if data.kind == "memory":
        powers = [number for number in range(64) if low <= 2**number <= high]
        ticks = [2**number for number in powers if number % math.ceil(len(powers) / MAX_TICKS) == 0]
        axes.set_xticks(ticks, [format_bytes(tick).replace(".0 ", " ") for tick in ticks])
        axes.set_xlabel("memory kept from task to task, network included (log scale)")
    else:
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:.6g}")
        unit = f"as a multiple of {REFERENCE}'s" if data.relative else "in seconds"
        axes.set_xlabel(f"time of training and evaluation {unit}{' (log scale)' if low else ''}")
        if low:
            axes.set_xticks(round_ticks(low, high), [f"{tick:g}" for tick in round_ticks(low, high)])
    axes.minorticks_off()
    axes.grid()
    axes.set(axisbelow=True, ylabel=f"ACC in %{', error bars: std over seeds' if data.several else ''}")
    better = "smaller" if data.kind == "memory" else "faster"
    axes.set_title(f"↖ better and {better}", loc="left", fontsize=9, color=MUTED)
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=5, handletextpad=0.2, borderpad=0.2)
