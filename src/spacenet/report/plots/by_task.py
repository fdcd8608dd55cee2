"""The accuracy of each method on each task after the last one: as grouped bars, or as a heat map of many."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spacenet.experiments.comparison import ComparisonData
from spacenet.report.plots.drawing import MAX_NUMBERED, cell_texts, draw_cells, name_ticks, task_text, tasks_text
from spacenet.report.plots.methods import rank_methods
from spacenet.report.plots.plot import INK, Figure, Plot, new_axes, new_figure, task_colors

MAX_METHODS, MAX_BARS = 7, 49  # up to which bars are distinguishable
MAX_CELLS = 300  # up to which cells get numbers
FEW_TASKS = 6  # up to which tasks are named with their classes


@dataclass(frozen=True)
class ByTaskData:
    """Accuracies after the last task, in %; the method with the best average first."""

    methods: tuple[str, ...]
    accuracy: NDArray[np.float64]  # (method, task): the mean over the seeds
    over_seeds: NDArray[np.float64] | None
    """(method, task): the standard deviation over the seeds; None if no method ran with several."""
    labels: tuple[tuple[str, ...], ...]  # the classes of each task
    leaders: tuple[str, ...]  # the best method without stored samples, then the best with them

    @property
    def over_tasks(self) -> NDArray[np.float64]:
        """The standard deviation over the tasks: how evenly a method remembers."""
        return _std(self.accuracy, axis=1)

    @property
    def as_bars(self) -> bool:
        methods, tasks = len(self.methods), len(self.labels)
        return methods <= MAX_METHODS and methods * (tasks + 1) <= MAX_BARS

    @property
    def task_names(self) -> list[str]:
        """Numbers of many tasks; few are named, with their classes if those are short."""
        few = len(self.labels) <= FEW_TASKS
        return [task_text(i, labels, 6) if few else str(i + 1) for i, labels in enumerate(self.labels)]


def by_task_data(comparison: ComparisonData) -> ByTaskData:
    """Each method's last row of the accuracy matrix."""
    last = {name: np.array([run.metrics["matrix"][-1] for run in runs]) for name, runs in comparison.runs.items()}
    methods = sorted(last, key=lambda name: -float(last[name].mean()))
    several = any(len(rows) > 1 for rows in last.values())
    return ByTaskData(
        tuple(methods),
        np.array([last[name].mean(0) for name in methods]),
        np.array([_std(last[name], axis=0) for name in methods]) if several else None,
        tuple(map(tuple, comparison.labels)),
        tuple(name for group in rank_methods(comparison.rows) for name in group[:1]),
    )


def _std(values: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
    return np.asarray(values.std(axis, ddof=1 if values.shape[axis] > 1 else 0))


def by_task_plot(data: ByTaskData) -> Plot | None:
    """Bars or heat map; None for a single task or a single method."""
    if min(data.accuracy.shape) < 2:
        return None
    rows = zip(data.methods, data.accuracy, strict=True)
    each = "; ".join(f"{name}: {tasks_text(row, 6)}, average {row.mean():.1f} %" for name, row in rows)
    kind, draw = ("Bar chart", _draw_bars) if data.as_bars else ("Heat map", _draw_cells)
    text = f"{kind} of the accuracy of each method on each task after the last one. {each}."
    return Plot("accuracy-by-task", _title(data), text, lambda: draw(data))


def _title(data: ByTaskData) -> str:
    """How much the best methods remember of every task, and which methods forgot tasks."""
    least = {name: f"{row.min():.0f} %" for name, row in zip(data.methods, data.accuracy, strict=True)}
    title = f"After the last task, {data.leaders[0]} has at least {least[data.leaders[0]]} on every task"
    for other in data.leaders[1:]:
        title += f", {other} (with stored samples) at least {least[other]}"
    earlier = data.accuracy[:, :-1]
    lost = (earlier < 1).sum(1)
    forgetful = [name for name, count in zip(data.methods, lost, strict=True) if count]
    if not forgetful:
        return title
    names = ", ".join(forgetful) if len(forgetful) <= 4 else f"{len(forgetful)} methods"
    tasks = "a task" if lost.max() == 1 else f"up to {lost.max()} tasks"
    tasks = "all tasks but the last" if lost.max() == earlier.shape[1] else tasks
    return f"{title}; {names} {'has' if len(forgetful) == 1 else 'have'} forgotten {tasks}"


def _draw_bars(data: ByTaskData) -> Figure:
    methods, tasks = data.accuracy.shape
    figure, axes = new_axes(3.4)
    width, places = 0.84 / methods, np.array([*range(tasks), tasks + 0.25])
    error_bar: dict[str, Any] = {"fmt": "none", "color": INK, "lw": 1}
    for number, (name, shade) in enumerate(zip(data.methods, task_colors(methods), strict=True)):
        x, y = places + (number - (methods - 1) / 2) * width, data.accuracy[number]
        axes.bar(x, [*y, y.mean()], 0.92 * width, color=shade, label=name)
        if data.over_seeds is not None:
            axes.errorbar(x[:-1], y, data.over_seeds[number], **error_bar)
        axes.errorbar(x[-1], y.mean(), data.over_tasks[number], capsize=2, **error_bar)
    names = [name.replace(" (", "\n(") for name in data.task_names]
    if not all("\n" in name for name in names):  # classes under all tasks or under none
        names = [name.partition("\n")[0] for name in names]
    axes.set_xticks(places, [*names, "average"])
    axes.tick_params(axis="x", length=0)
    axes.grid(axis="y")
    prefix = "" if tasks <= FEW_TASKS else "task; "
    over = "over seeds; at the average: " if data.over_seeds is not None else "of the average "
    axes.set(ylim=(0, 105), axisbelow=True, xlabel=f"{prefix}error bars: standard deviation {over}over tasks")
    axes.set_ylabel("accuracy in % after the last task")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=methods, borderpad=0)
    return figure


def _draw_cells(data: ByTaskData) -> Figure:
    methods, tasks = data.accuracy.shape
    figure = new_figure(1.0 + 0.26 * methods)
    axes, beside = figure.subplots(1, 2, sharey=True, width_ratios=[6, 1])
    numbered = tasks <= MAX_NUMBERED and methods * tasks <= MAX_CELLS
    std = data.over_seeds if tasks <= 8 else None
    texts = _cell_texts(data.accuracy, std) if numbered else None
    draw_cells(axes, data.accuracy, texts, "accuracy in %", beside)
    average = data.accuracy.mean(1, keepdims=True)
    draw_cells(beside, average, _cell_texts(average, data.over_tasks[:, None]))
    name_ticks(axes.xaxis, data.task_names)
    name_ticks(axes.yaxis, data.methods)
    name_ticks(beside.xaxis, ["average"])
    beside.set_xlabel("± over tasks")
    spread = " ± standard deviation over seeds" if std is not None else ""
    axes.set_xlabel(f"accuracy in % after the last task{spread}{'' if tasks <= FEW_TASKS else ', on task'}")
    return figure


def _cell_texts(means: NDArray[np.float64], stds: NDArray[np.float64] | None) -> Sequence[Sequence[str]]:
    if stds is None:
        return cell_texts(means)
    rows = zip(cell_texts(means), cell_texts(stds), strict=True)
    return [[f"{mean} ± {std}" for mean, std in zip(*row, strict=True)] for row in rows]
