"""Methods side by side: ranked by accuracy and by model size, and ACC against memory and against time."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from spacenet.experiments.comparison import REFERENCE, ComparisonData, Row
from spacenet.report.plots.drawing import Box, place_labels, round_ticks
from spacenet.report.plots.plot import INK, MUTED, Axes, Figure, Plot, new_axes, task_colors
from spacenet.utils.significance import LEVEL, paired_p
from spacenet.utils.text import MeanStd, format_bytes

BOUND = "Bound"
"""The strategy of methods that only show the lowest and highest accuracy to expect."""
STRATEGIES = ("Architectural", "Rehearsal", "Regularization", BOUND, "Statistical")
MARKERS = "os^DvPX*"
TOP = 105.0  # end of the ACC axis, in %
AXES_SIZE = (410.0, 205.0)  # approximate size of the axes in points; labels are placed within it
LETTER, LINE_HEIGHT = 5.3, 11.0  # approximate size of text in points
MAX_TICKS = 7
PALE = 0.4  # opacity
FLOAT_BYTES = 4


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

    row: Row
    value: float
    text: str
    std: float | None = None
    solid: float | None = None
    """The part of the value that is drawn in full color, the rest is pale; by default all of it."""


def acc_plot(comparison: ComparisonData) -> Plot:
    """The methods ranked by the mean accuracy over all tasks after the last one, highest first."""
    bars = []
    for row in sorted(comparison.rows, key=lambda row: -row.acc.mean):
        std = row.acc.std
        text = f"{row.acc.mean:.1f} %" if std is None else f"{row.acc.mean:.1f} ± {std:.1f} %"
        bars.append(Bar(row, row.acc.mean, text, std))
    best, *others = [bar for bar in bars if bar.row.strategy != BOUND] or bars
    title = f"{best.row.method} is the most accurate: {best.text}"
    if others:
        title += f"; next is {others[0].row.method} with {others[0].text}"
        accs = comparison.accs
        p = paired_p(*(accs.get(bar.row.method, {}) for bar in (best, others[0])))
        title += ", no significant difference" if p is not None and p >= LEVEL else ""
    bounds = [f"{bar.row.method} {bar.value:.0f} %" for bar in bars if bar.row.strategy == BOUND != best.row.strategy]
    title += f" (bounds: {', '.join(bounds)})" if bounds else ""
    what = "ACC (mean accuracy over all tasks after the last one)"
    return _ranking_plot("acc-by-method", title, what, "ACC in %", bars)


def size_plot(comparison: ComparisonData) -> Plot:
    """The methods ranked by the numbers they keep after the last task, fewest first: their parameters, and what else
    they keep (a generator, stored samples, importances) at 4 bytes a number."""
    bars = sorted(map(_size_bar, comparison.rows), key=lambda bar: bar.value)
    extra = any(bar.value != bar.solid for bar in bars)
    what = "numbers (parameters and extra memory)" if extra else "parameters"
    least, most = bars[0], bars[-1]
    smallest, largest = ([bar.row.method for bar in bars if bar.value == end.value] for end in (least, most))
    names = " and ".join(smallest) if len(smallest) <= 2 else f"{len(smallest)} methods"
    verb = "needs" if len(smallest) == 1 else "need"
    others = f"the largest, {largest[0]}, has" if len(largest) == 1 else f"the {len(largest)} largest have"
    times = f"{most.value / max(least.value, 1):.1f} times as many"
    title = f"{names} {verb} {least.value:,.0f} {what}; {others} {times} ({most.value:,.0f})"
    if least.value == most.value:
        title = f"All methods have the same number of {what}: {least.value:,.0f}"
    unit = "number of parameters after the last task"
    if extra:
        unit += "; pale: extra memory, at 4 bytes a number (log scale)"
    return _ranking_plot("size-by-method", title, f"number of {what}", unit, bars)


def _size_bar(row: Row) -> Bar:
    extra = row.extra_bytes / FLOAT_BYTES
    text = f"{row.parameters:,.0f}" + (f" + {extra:,.0f}" if round(extra) else "")
    return Bar(row, row.parameters + extra, text, solid=row.parameters)


def _ranking_plot(name: str, title: str, what: str, unit: str, bars: Sequence[Bar]) -> Plot:
    each = "; ".join(f"{bar.row.method} {bar.text}" for bar in bars)
    text = f"Bar chart of the {what} of each method, in order. {each}."
    return Plot(name, title, text, lambda: _draw_ranking(bars, unit))


def _draw_ranking(bars: Sequence[Bar], unit: str) -> Figure:
    count, looks = len(bars), strategy_markers(bar.row.strategy for bar in bars)
    figure, axes = new_axes(0.75 + 0.25 * count)
    top = max(*(bar.value + (bar.std or 0) for bar in bars), 1e-9)
    log = any(bar.solid not in (None, bar.value) for bar in bars)
    low = max(1.0, min(bar.value for bar in bars) / 3) if log else 0.0
    gap, end = (1.05, top * (top / low) ** 0.4) if log else (0.012 * top, 1.2 * top)
    for place, bar in enumerate(bars):
        color, solid = looks[bar.row.strategy][0], bar.value if bar.solid is None else bar.solid
        axes.barh(place, solid, 0.72, color=color)
        if solid < bar.value:
            axes.barh(place, bar.value - solid, 0.72, left=solid, color=color, alpha=PALE)
        if bar.std is not None:
            axes.errorbar(bar.value, place, xerr=bar.std, color=INK, lw=1.2, capsize=2)
        beside = bar.value * gap if log else bar.value + (bar.std or 0) + gap
        axes.text(beside, place, bar.text, va="center")
    axes.set_yticks(range(count), [bar.row.method for bar in bars])
    for text in axes.get_yticklabels():
        text.set_fontweight("bold" if text.get_text() == "spacenet" else "normal")
    axes.tick_params(axis="y", length=0)
    axes.spines[:].set_visible(False)
    over_seeds = " ± standard deviation over seeds" if any(bar.std is not None for bar in bars) else ""
    axes.set(xscale="log" if log else "linear", xlim=(low, end), ylim=(count - 0.5, -0.5), xlabel=unit + over_seeds)
    axes.set_xticks([])
    axes.minorticks_off()
    patches = [axes.barh(0, 0, color=color, label=name.lower()) for name, (color, _) in looks.items()]
    axes.legend(handles=patches, loc="lower right", bbox_to_anchor=(1, 1), ncols=5)
    return figure


@dataclass(frozen=True)
class TradeOff:
    """The methods, the most accurate first, and what each costs in bytes or seconds."""

    kind: Literal["memory", "time"]
    relative: bool  # whether times are multiples of the reference method's instead
    rows: Sequence[Row]
    costs: Sequence[MeanStd]

    def cost_text(self, cost: float) -> str:
        if self.kind == "memory":
            return format_bytes(cost)
        return f"{cost:.2g} × {REFERENCE}'s time" if self.relative else f"{cost:.3g} s"


def trade_off(comparison: ComparisonData, kind: Literal["memory", "time"]) -> TradeOff:
    """Memory is what is kept from task to task, network included; time that of training and evaluation."""
    runs, metric = comparison.runs, "bytes_kept" if kind == "memory" else "seconds"
    relative = kind == "time" and REFERENCE in runs
    unit = MeanStd.of([run.metrics[metric] for run in runs[REFERENCE]]).mean if relative else 1.0
    rows = sorted(comparison.rows, key=lambda row: -row.acc.mean)
    costs = [MeanStd.of([run.metrics[metric] / unit for run in runs[row.method]]) for row in rows]
    return TradeOff(kind, relative, rows, costs)


def trade_off_plot(comparison: ComparisonData, kind: Literal["memory", "time"]) -> Plot:
    """A point for each method."""
    data, cost = trade_off(comparison, kind), "memory kept" if kind == "memory" else "training time"
    texts = {row.method: data.cost_text(cost.mean) for row, cost in zip(data.rows, data.costs, strict=True)}
    each = "; ".join(f"{row.method} {row.acc.mean:.1f} % with {texts[row.method]}" for row in data.rows)
    text = f"Scatter plot of each method's accuracy over all tasks after the last one (ACC) against its {cost}. {each}."
    accuracy = {row.method: f"{row.acc.mean:.0f} %" for row in data.rows}
    (without, keeping), word = rank_methods(data.rows), "with" if kind == "memory" else "in"
    best = (*without, *keeping)[0]
    title = f"{best} reaches {accuracy[best]} {word} {texts[best]}"
    for name in without[1:2]:
        title += f"; the next without stored samples is {name} with {accuracy[name]} and {texts[name]}"
    for name in keeping[:1] if without else ():
        title += f"; with stored samples {name} reaches {accuracy[name]} {word} {texts[name]}"
    return Plot(f"accuracy-and-{kind}", title, text, lambda: _draw_trade_off(data))


def _draw_trade_off(data: TradeOff) -> Figure:
    figure, axes = new_axes(3.9)
    rows, costs, several = data.rows, data.costs, any(row.seeds > 1 for row in data.rows)
    smallest, largest = (
        max(min(cost.mean for cost in costs), 1e-9),
        max(cost.mean + (cost.std or 0.0) for cost in costs),
    )
    log = data.kind == "memory" or largest / smallest > 10
    low, high = (smallest / 1.6, max(largest, smallest) * 1.6) if log else (0.0, 1.15 * largest)
    axes.set(xscale="log" if log else "linear", xlim=(low, high), ylim=(0, TOP))
    for strategy, (color, shape) in strategy_markers(row.strategy for row in rows).items():
        group = [(row.acc, cost) for row, cost in zip(rows, costs, strict=True) if row.strategy == strategy]
        style: dict[str, Any] = {"ms": 6.5, "mew": 0.5}
        if strategy == BOUND:  # hollow, so that markers below it are visible
            style = {"ms": 9, "mew": 1.5, "markerfacecolor": "none"}
        if several:
            above = [cost.std or 0.0 for _, cost in group]
            below = [min(std, 0.9 * cost.mean) for std, (_, cost) in zip(above, group, strict=True)]
            style |= {"xerr": [below, above], "yerr": [acc.std or 0.0 for acc, _ in group]}
        x, y = [cost.mean for _, cost in group], [acc.mean for acc, _ in group]
        axes.errorbar(x, y, fmt=shape, color=color, lw=1.2, label=strategy.lower(), **style)
    _label_points(axes, data, low, high)
    _style_cost_axis(axes, data, low, high)
    axes.minorticks_off()
    axes.grid()
    axes.set(axisbelow=True, ylabel=f"ACC in %{', error bars: std over seeds' if several else ''}")
    better = "smaller" if data.kind == "memory" else "faster"
    axes.set_title(f"↖ better and {better}", loc="left", fontsize=9, color=MUTED)
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=5, handletextpad=0.2, borderpad=0.2)
    return figure


def _label_points(axes: Axes, data: TradeOff, low: float, high: float) -> None:
    """A label beside each point, with a thin line if it had to move away."""
    scale: Callable[[float], float] = math.log if low else float
    points = list(zip(data.rows, data.costs, strict=True))

    def across(cost: float) -> float:
        return AXES_SIZE[0] * (scale(max(cost, low)) - scale(low)) / (scale(high) - scale(low))

    up = AXES_SIZE[1] / TOP
    places = [(across(cost.mean), up * row.acc.mean) for row, cost in points]
    bars: list[Box] = []
    for (row, cost), (x, y) in zip(points, places, strict=True):
        wide, tall = cost.std or 0.0, up * (row.acc.std or 0.0)
        bars.append((across(cost.mean - wide), y - 1, across(cost.mean + wide), y + 1))
        bars.append((x - 1, y - tall, x + 1, y + tall))
    texts = [f"{row.method} {row.acc.mean:.0f} %" for row in data.rows]
    sizes = [(LETTER * len(text), LINE_HEIGHT) for text in texts]
    corners = place_labels(places, sizes, AXES_SIZE, bars)
    for (row, cost), (x, y), (left, bottom), text, size in zip(points, places, corners, texts, sizes, strict=True):
        right, rise = left > x, bottom + LINE_HEIGHT / 2 - y
        away = left - x if right else left + size[0] - x
        line = {"arrowstyle": "-", "color": MUTED, "lw": 0.6, "shrinkA": 0, "shrinkB": 4}
        style: dict[str, Any] = {"ha": "left" if right else "right", "va": "center", "size": 8.5, "color": INK}
        if abs(rise) > 9 or abs(away) > 10:
            style["arrowprops"] = line | {"relpos": (0 if right else 1, 0.5)}
        style["weight"] = "bold" if row.method == "spacenet" else "normal"
        axes.annotate(text, (cost.mean, row.acc.mean), (away, rise), textcoords="offset points", **style)


def _style_cost_axis(axes: Axes, data: TradeOff, low: float, high: float) -> None:
    if data.kind == "memory":
        powers = [number for number in range(64) if low <= 2**number <= high]
        ticks = [2**number for number in powers if number % math.ceil(len(powers) / MAX_TICKS) == 0]
        axes.set_xticks(ticks, [format_bytes(tick).replace(".0 ", " ") for tick in ticks])
        axes.set_xlabel("memory kept from task to task, network included (log scale)")
        return
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.6g}")
    unit = f"as a multiple of {REFERENCE}'s" if data.relative else "in seconds"
    axes.set_xlabel(f"time of training and evaluation {unit}{' (log scale)' if low else ''}")
    if low:
        axes.set_xticks(round_ticks(low, high), [f"{tick:g}" for tick in round_ticks(low, high)])
