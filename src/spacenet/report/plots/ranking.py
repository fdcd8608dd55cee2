"""Methods in order, one bar each: by accuracy, and by number of parameters. How strategies look in all comparisons."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from spacenet.experiments.comparison import ComparisonData, Row
from spacenet.report.plots.plot import INK, Plot, new_figure, task_colors

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    std: float | None = None


@dataclass(frozen=True)
class RankingData:
    """The bars, the best first."""

    kind: Literal["acc", "parameters"]
    bars: tuple[Bar, ...]

    def text(self, bar: Bar) -> str:
        if self.kind == "parameters":
            return f"{bar.value:,.0f}"
        return f"{bar.value:.1f} %" if bar.std is None else f"{bar.value:.1f} ± {bar.std:.1f} %"


def acc_data(comparison: ComparisonData) -> RankingData:
    """The mean accuracy over all tasks after the last one, highest first."""
    bars = [
        Bar(row.method, row.strategy, row.acc.mean, row.acc.std if row.seeds > 1 else None)
        for row in sorted(comparison.rows, key=lambda row: -row.acc.mean)
    ]
    return RankingData("acc", tuple(bars))


def parameters_data(comparison: ComparisonData) -> RankingData:
    """The number of parameters after the last task, fewest first."""
    bars = [
        Bar(row.method, row.strategy, row.parameters) for row in sorted(comparison.rows, key=lambda row: row.parameters)
    ]
    return RankingData("parameters", tuple(bars))


def ranking_plot(data: RankingData) -> Plot | None:
    """A bar for each method; None for a single one."""
    if len(data.bars) < 2:
        return None
    what = "ACC (mean accuracy over all tasks after the last one)" if data.kind == "acc" else "number of parameters"
    each = "; ".join(f"{bar.method} {data.text(bar)}" for bar in data.bars)
    return Plot(
        "acc-by-method" if data.kind == "acc" else "parameters-by-method",
        _acc_title(data) if data.kind == "acc" else _parameters_title(data),
        f"Bar chart of the {what} of each method, in order. {each}.",
        lambda: _draw(data),
    )


def _acc_title(data: RankingData) -> str:
    compared = [bar for bar in data.bars if bar.strategy != BOUND] or list(data.bars)
    title = f"{compared[0].method} is the most accurate: {data.text(compared[0])}"
    if compared[1:]:
        title += f"; next is {compared[1].method} with {data.text(compared[1])}"
    bounds = [f"{bar.method} {bar.value:.0f} %" for bar in data.bars if bar.strategy == BOUND and bar not in compared]
    return title + (f" (bounds: {', '.join(bounds)})" if bounds else "")


def _parameters_title(data: RankingData) -> str:
    least, most = data.bars[0], data.bars[-1]
    smallest = [bar.method for bar in data.bars if bar.value == least.value]
    largest = [bar.method for bar in data.bars if bar.value == most.value]
    if least.value == most.value:
        return f"All methods have the same number of parameters: {data.text(least)}"
    names = " and ".join(smallest) if len(smallest) <= 2 else f"{len(smallest)} methods"
    verb = "needs" if len(smallest) == 1 else "need"
    others = f"the largest, {largest[0]}, has" if len(largest) == 1 else f"the {len(largest)} largest have"
    times = f"{most.value / max(least.value, 1):.1f} times as many"
    return f"{names} {verb} {data.text(least)} parameters; {others} {times} ({data.text(most)})"


def _draw(data: RankingData) -> "Figure":
    figure = new_figure(0.75 + 0.25 * len(data.bars))
    axes = figure.subplots()
    looks = strategy_markers(bar.strategy for bar in data.bars)
    ends = []
    for place, bar in enumerate(data.bars):
        axes.barh(place, bar.value, 0.72, color=looks[bar.strategy][0])
        if bar.std is not None:
            axes.errorbar(bar.value, place, xerr=bar.std, color=INK, lw=1.2, capsize=2)
        ends.append(bar.value + (bar.std or 0))
    top = max(max(ends), 1e-9)
    for place, (bar, end) in enumerate(zip(data.bars, ends, strict=True)):
        axes.text(end + 0.012 * top, place, data.text(bar), va="center")
    axes.set_yticks(range(len(data.bars)), [bar.method for bar in data.bars])
    for text in axes.get_yticklabels():
        text.set_fontweight("bold" if text.get_text() == "spacenet" else "normal")
    axes.set_ylim(len(data.bars) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(0, 1.2 * top)
    axes.spines[:].set_visible(False)
    axes.set_xticks([])
    ranged = " ± standard deviation over seeds" if any(bar.std is not None for bar in data.bars) else ""
    axes.set_xlabel(f"ACC in %{ranged}" if data.kind == "acc" else "number of parameters after the last task")
    patches = [axes.barh(0, 0, color=color, label=name.lower()) for name, (color, _) in looks.items()]
    axes.legend(
        handles=patches, loc="lower right", bbox_to_anchor=(1, 1), ncols=5, columnspacing=1.2, handletextpad=0.4
    )
    return figure
