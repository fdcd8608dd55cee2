"""The accuracy of each method on each task after the last one: as grouped bars, or as a heat map of many."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spacenet.experiments.comparison import ComparisonData
from spacenet.report.plots.drawing import MAX_NUMBERED, cell_texts, draw_cells, draw_color_bar, name_ticks
from spacenet.report.plots.labels import task_text, tasks_text
from spacenet.report.plots.plot import INK, Plot, new_figure, task_colors
from spacenet.report.plots.ranking import rank_methods

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_METHODS, MAX_BARS = 7, 49
"""Up to which bars are distinguishable."""
MAX_CELLS = 300
"""Up to which cells get numbers."""


@dataclass(frozen=True)
class ByTaskData:
    """Accuracies after the last task, in %; the method with the best average first."""

    methods: tuple[str, ...]
    accuracy: NDArray[np.float64]
    """(method, task): the mean over the seeds."""
    over_seeds: NDArray[np.float64] | None
    """(method, task): the standard deviation over the seeds; None if no method ran with several."""
    labels: tuple[tuple[str, ...], ...]
    """The classes of each task."""
    leaders: tuple[str, ...]
    """The best method without stored samples, then the best with them."""

    @property
    def average(self) -> NDArray[np.float64]:
        """Of each method over the tasks."""
        return np.asarray(self.accuracy.mean(1))

    @property
    def over_tasks(self) -> NDArray[np.float64]:
        """The standard deviation over the tasks: how evenly a method remembers."""
        return np.asarray(self.accuracy.std(1, ddof=1 if self.accuracy.shape[1] > 1 else 0))

    @property
    def as_bars(self) -> bool:
        methods, tasks = len(self.methods), len(self.labels)
        return methods <= MAX_METHODS and methods * (tasks + 1) <= MAX_BARS


def by_task_data(comparison: ComparisonData) -> ByTaskData:
    """Each method's last row of the accuracy matrix."""
    last = {
        name: np.array([run.metrics["matrix"][-1] for run in runs], float) for name, runs in comparison.runs.items()
    }
    methods = sorted(last, key=lambda name: -float(last[name].mean()))
    several = any(len(rows) > 1 for rows in last.values())
    std = [last[name].std(0, ddof=1 if len(last[name]) > 1 else 0) for name in methods]
    return ByTaskData(
        tuple(methods),
        np.array([last[name].mean(0) for name in methods]),
        np.array(std) if several else None,
        tuple(tuple(task) for task in comparison.labels),
        tuple(name for group in rank_methods(comparison.rows) for name in group[:1]),
    )


def by_task_plot(data: ByTaskData) -> Plot | None:
    """Bars or heat map; None for a single task or a single method."""
    if min(data.accuracy.shape) < 2:
        return None
    each = "; ".join(
        f"{name}: {tasks_text(row, 6)}, average {row.mean():.1f} %"
        for name, row in zip(data.methods, data.accuracy, strict=True)
    )
    kind = "Bar chart" if data.as_bars else "Heat map"
    return Plot(
        "accuracy-by-task",
        _title(data),
        f"{kind} of the accuracy of each method on each task after the last one. {each}.",
        lambda: _draw_bars(data) if data.as_bars else _draw_cells(data),
    )


def _title(data: ByTaskData) -> str:
    """How much the best methods remember of every task, and which methods forgot tasks."""
    least = {name: f"{row.min():.0f} %" for name, row in zip(data.methods, data.accuracy, strict=True)}
    title = f"After the last task, {data.leaders[0]} has at least {least[data.leaders[0]]} on every task"
    for other in data.leaders[1:]:
        title += f", {other} (with stored samples) at least {least[other]}"
    lost = np.asarray((data.accuracy[:, :-1] < 1).any(1))
    forgetful = [name for name, gone in zip(data.methods, lost, strict=True) if gone]
    if not forgetful:
        return title
    names = ", ".join(forgetful) if len(forgetful) <= 4 else f"{len(forgetful)} methods"
    count = int((data.accuracy[lost][:, :-1] < 1).sum(1).max())
    return f"{title}; {names} {'has' if len(forgetful) == 1 else 'have'} forgotten {_tasks(count, data)}"


def _tasks(count: int, data: ByTaskData) -> str:
    if count == data.accuracy.shape[1] - 1:
        return "all tasks but the last"
    return "a task" if count == 1 else f"up to {count} tasks"


def _draw_bars(data: ByTaskData) -> "Figure":
    methods, tasks = data.accuracy.shape
    figure = new_figure(3.4)
    axes = figure.subplots()
    width = 0.84 / methods
    places = np.array([*range(tasks), tasks + 0.25])
    for number, (name, shade) in enumerate(zip(data.methods, task_colors(methods), strict=True)):
        x = places + (number - (methods - 1) / 2) * width
        heights = np.append(data.accuracy[number], data.average[number])
        axes.bar(x, heights, 0.92 * width, color=shade, label=name)
        if data.over_seeds is not None:
            axes.errorbar(x[:-1], heights[:-1], data.over_seeds[number], fmt="none", color=INK, lw=1)
        axes.errorbar(
            x[-1:], heights[-1:], data.over_tasks[number : number + 1], fmt="none", color=INK, lw=1, capsize=2
        )
    few = tasks <= 6
    names = [
        task_text(i, labels, 6).replace(" (", "\n(") if few else str(i + 1) for i, labels in enumerate(data.labels)
    ]
    if not all("\n" in name for name in names):  # classes under all tasks or under none
        names = [name.partition("\n")[0] for name in names]
    axes.set_xticks(places, [*names, "average"])
    axes.set_ylim(0, 105)
    axes.tick_params(axis="x", length=0)
    axes.set_ylabel("accuracy in % after the last task")
    axes.grid(axis="y")
    axes.set_axisbelow(True)
    over_seeds = "over seeds; at the average: " if data.over_seeds is not None else "of the average "
    axes.set_xlabel(f"{'' if few else 'task; '}error bars: standard deviation {over_seeds}over tasks")
    axes.legend(
        loc="lower left", bbox_to_anchor=(0, 1), ncols=methods, columnspacing=1.2, handletextpad=0.4, borderpad=0
    )
    return figure


def _draw_cells(data: ByTaskData) -> "Figure":
    methods, tasks = data.accuracy.shape
    figure = new_figure(1.0 + 0.26 * methods)
    axes, beside = figure.subplots(1, 2, sharey=True, width_ratios=[6, 1])
    few, std = tasks <= 6, data.over_seeds is not None and tasks <= 8
    numbered = tasks <= MAX_NUMBERED and methods * tasks <= MAX_CELLS
    texts = cell_texts(data.accuracy)
    if std and data.over_seeds is not None:
        texts = [_with_std(*lines) for lines in zip(texts, cell_texts(data.over_seeds), strict=True)]
    image = draw_cells(axes, data.accuracy, texts if numbered else None)
    averages = _with_std(*(cell_texts(values[None])[0] for values in (data.average, data.over_tasks)))
    draw_cells(beside, data.average[:, None], [[text] for text in averages])
    for each in (axes, beside):
        each.set_aspect("auto")
    if not numbered:
        draw_color_bar(beside, image, "accuracy in %")
    name_ticks(axes.xaxis, [task_text(i, labels, 6) if few else str(i + 1) for i, labels in enumerate(data.labels)])
    name_ticks(axes.yaxis, data.methods)
    name_ticks(beside.xaxis, ["average"])
    beside.set_xlabel("± over tasks")
    unit = "accuracy in % after the last task" + (" ± standard deviation over seeds" if std else "")
    axes.set_xlabel(unit + ("" if few else ", on task"))
    return figure


def _with_std(means: Sequence[str], stds: Sequence[str]) -> list[str]:
    return [f"{mean} ± {std}" for mean, std in zip(means, stds, strict=True)]
