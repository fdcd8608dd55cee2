"""The accuracy of each method on each task after the last one: as grouped bars, or as a heat map of many."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spacenet.experiments.comparison import ComparisonData
from spacenet.report.plots import drawing
from spacenet.report.plots.curves import std_over_seeds
from spacenet.report.plots.drawing import Percentages
from spacenet.report.plots.methods import rank_methods
from spacenet.report.plots.plot import INK, Figure, Plot, new_axes, new_figure, task_colors

MAX_METHODS, MAX_BARS = 7, 49  # up to which bars are distinguishable
MAX_CELLS = 300  # up to which cells get numbers


@dataclass(frozen=True)
class LastAccuracies:
    """Accuracies after the last task, in %; the method with the best average first."""

    methods: Sequence[str]
    means: Percentages  # (method, task), over the seeds
    over_seeds: Percentages | None  # (method, task), their standard deviation; None if no method has several seeds
    average_stds: Percentages  # (method,), the standard deviation of the average over the seeds; NaN for a single one


def last_accuracies(comparison: ComparisonData) -> LastAccuracies:
    """Each method's last row of the accuracy matrix."""
    last = {name: np.array([run.metrics["matrix"][-1] for run in runs]) for name, runs in comparison.runs.items()}
    methods = sorted(last, key=lambda name: -float(last[name].mean()))
    means = np.array([last[name].mean(0) for name in methods])
    several = any(len(rows) > 1 for rows in last.values())
    over_seeds = np.array([std_over_seeds(last[name]) for name in methods]) if several else None
    average_stds = np.array([std_over_seeds(last[name].mean(1)) for name in methods])
    return LastAccuracies(methods, means, over_seeds, average_stds)


def by_task_plot(comparison: ComparisonData) -> Plot | None:
    """Bars or heat map; None for a single task or a single method."""
    data, labels = last_accuracies(comparison), comparison.labels
    count, tasks = data.means.shape
    if min(count, tasks) < 2:
        return None
    rows = zip(data.methods, data.means, strict=True)
    each = "; ".join(f"{name}: {drawing.tasks_text(row, 6)}, average {row.mean():.1f} %" for name, row in rows)
    as_bars = count <= MAX_METHODS and count * (tasks + 1) <= MAX_BARS
    kind, draw = ("Bar chart", _draw_bars) if as_bars else ("Heat map", _draw_cells)
    text = f"{kind} of the accuracy of each method on each task after the last one. {each}."
    leaders = [name for group in rank_methods(comparison.rows) for name in group[:1]]
    return Plot("accuracy-by-task", _title(data, leaders), text, lambda: draw(data, drawing.task_names(labels, 6)))


def _title(data: LastAccuracies, leaders: Sequence[str]) -> str:
    """How much the best methods remember of every task, and which methods forgot tasks."""
    least = {name: f"{row.min():.0f} %" for name, row in zip(data.methods, data.means, strict=True)}
    title = f"After the last task, {leaders[0]} has at least {least[leaders[0]]} on every task"
    for other in leaders[1:]:
        title += f", {other} (with stored samples) at least {least[other]}"
    earlier = data.means[:, :-1]
    lost = (earlier < 1).sum(1)
    forgetful = [name for name, count in zip(data.methods, lost, strict=True) if count]
    if not forgetful:
        return title
    names = ", ".join(forgetful) if len(forgetful) <= 4 else f"{len(forgetful)} methods"
    tasks = "a task" if lost.max() == 1 else f"up to {lost.max()} tasks"
    tasks = "all tasks but the last" if lost.max() == earlier.shape[1] else tasks
    return f"{title}; {names} {'has' if len(forgetful) == 1 else 'have'} forgotten {tasks}"


def _draw_bars(data: LastAccuracies, names: Sequence[str]) -> Figure:
    methods, tasks = data.means.shape
    figure, axes = new_axes(3.4)
    width, places = 0.84 / methods, np.array([*range(tasks), tasks + 0.25])
    error_bar: dict[str, Any] = {"fmt": "none", "color": INK, "lw": 1}
    for number, (method, shade) in enumerate(zip(data.methods, task_colors(methods), strict=True)):
        x, y = places + (number - (methods - 1) / 2) * width, data.means[number]
        axes.bar(x, [*y, y.mean()], 0.92 * width, color=shade, label=method)
        if data.over_seeds is not None:
            std = np.nan_to_num([*data.over_seeds[number], data.average_stds[number]])
            axes.errorbar(x, [*y, y.mean()], std, **error_bar)
    names = [name.replace(" (", "\n(") for name in names]
    if not all("\n" in name for name in names):  # classes under all tasks or under none
        names = [name.partition("\n")[0] for name in names]
    axes.set_xticks(places, [*names, "average"])
    axes.tick_params(axis="x", length=0)
    axes.grid(axis="y")
    notes = [] if tasks <= drawing.FEW_TASKS else ["task"]
    notes += ["error bars: standard deviation over seeds"] if data.over_seeds is not None else []
    axes.set(ylim=(0, 105), axisbelow=True, xlabel="; ".join(notes))
    axes.set_ylabel("accuracy in % after the last task")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=methods, borderpad=0)
    return figure


def _draw_cells(data: LastAccuracies, names: Sequence[str]) -> Figure:
    methods, tasks = data.means.shape
    figure = new_figure(1.0 + 0.26 * methods)
    axes, beside = figure.subplots(1, 2, sharey=True, width_ratios=[6, 1])
    numbered = tasks <= drawing.MAX_NUMBERED and methods * tasks <= MAX_CELLS
    std = data.over_seeds if tasks <= 8 else None
    texts = drawing.cell_texts(data.means, stds=std) if numbered else None
    drawing.draw_cells(axes, data.means, texts, "accuracy in %", beside)
    average = data.means.mean(1, keepdims=True)
    stds = data.average_stds[:, None] if data.over_seeds is not None else None
    drawing.draw_cells(beside, average, drawing.cell_texts(average, stds=stds))
    drawing.name_ticks(axes.xaxis, names)
    drawing.name_ticks(axes.yaxis, data.methods)
    drawing.name_ticks(beside.xaxis, ["average"])
    beside.set_xlabel("± over seeds" if stds is not None else "")
    spread = " ± standard deviation over seeds" if std is not None else ""
    on_task = "" if tasks <= drawing.FEW_TASKS else ", on task"
    axes.set_xlabel(f"accuracy in % after the last task{spread}{on_task}")
    return figure
