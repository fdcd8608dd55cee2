"""Methods in order, one bar each: by accuracy, and by number of parameters. How strategies look in all comparisons."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from spacenet.experiments.comparison import ComparisonData, Row
from spacenet.report.plots.plot import INK, Figure, Plot, new_axes, task_colors

BOUND = "Bound"
"""The strategy of methods that only show the lowest and highest accuracy to expect."""
STRATEGIES = ("Architectural", "Rehearsal", "Regularization", BOUND, "Statistical")
MARKERS = "os^DvPX*"


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
    return Plot(f"{data.kind}-by-method", title(data.bars), text, lambda: _draw(data))


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


def _draw(data: RankingData) -> Figure:
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
