"""The accuracy matrix: as a heat map, and as the accuracy on each task while later tasks are learned."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spacenet.experiments.run import RunData
from spacenet.report.plots.drawing import (
    MAX_NUMBERED,
    cell_texts,
    draw_cells,
    draw_color_bar,
    evenly_chosen,
    name_ticks,
)
from spacenet.report.plots.labels import share_texts, spread_labels, task_text, tasks_text
from spacenet.report.plots.plot import INK, Axes, Figure, Plot, new_axes, task_colors

MAX_LABELS = 12  # lines up to which each has a label


@dataclass(frozen=True)
class MatrixData:
    """The accuracy on each task after each task."""

    accuracy: NDArray[np.float64]
    """(after task, on task) in %; NaN for tasks still to come."""
    means: tuple[float, ...]
    """Over the tasks learned so far, after each task."""
    acc: float
    bwt: float
    labels: tuple[tuple[str, ...], ...]
    """The classes of each task."""


def matrix_data(run: RunData) -> MatrixData:
    """The learned tasks' part of the accuracy matrix."""
    learned = len(run.metrics["matrix"])
    accuracy = np.array([row[:learned] for row in run.metrics["matrix"]], float)
    accuracy[np.triu_indices(learned, 1)] = np.nan
    means = tuple(float(row[: number + 1].mean()) for number, row in enumerate(accuracy))
    return MatrixData(accuracy, means, run.metrics["acc"], run.metrics["bwt"], tuple(map(tuple, run.labels)))


def matrix_plot(data: MatrixData) -> Plot | None:
    """The heat map; None for a single task."""
    count, bwt = len(data.accuracy), data.bwt
    if count < 2:
        return None
    change = f"{'lost' if bwt < 0 else 'gained'} {abs(bwt):.1f} points on average"
    change = "kept their accuracy" if abs(bwt) < 0.05 else change
    title = f"After {count} tasks, the mean accuracy is {data.acc:.1f} % (ACC); earlier tasks {change} (BWT)"
    text = (
        "Heat map of the accuracy on each task (columns) after learning each task (rows), in percent. "
        f"After the last task: {tasks_text(data.accuracy[-1])}. ACC {data.acc:.1f} %, BWT {bwt:+.1f}."
    )
    return Plot("accuracy-matrix", title, text, lambda: _draw_matrix(data))


def _draw_matrix(data: MatrixData) -> Figure:
    count = len(data.accuracy)
    numbered, few = count <= MAX_NUMBERED, count <= 6
    figure, axes = new_axes(min(1.2 + 0.45 * count, 5.4))
    image = draw_cells(axes, data.accuracy, cell_texts(data.accuracy, 1 if count <= 10 else 0) if numbered else None)
    if not numbered:
        draw_color_bar(axes, image, "accuracy in %", shrink=0.7, pad=0.02)
    name_ticks(axes.xaxis, [task_text(i, labels) if few else str(i + 1) for i, labels in enumerate(data.labels)])
    name_ticks(axes.yaxis, [f"task {i + 1}" if few else str(i + 1) for i in range(count)])
    end = "" if few else " task"
    axes.set(xlabel=f"accuracy in % on{end}", ylabel=f"after learning{end}")
    return figure


def history_plot(data: MatrixData) -> Plot | None:
    """A line for each task, and the mean; None for a single task."""
    if len(data.accuracy) < 2:
        return None
    last = data.accuracy[-1]
    lost = np.diagonal(data.accuracy) - last
    most = int(lost[:-1].argmax())
    first, final, learned, kept = share_texts([data.means[0], data.means[-1], data.accuracy[most, most], last[most]])
    loss = f"task {most + 1} loses most, from {learned} to {kept}"
    loss = loss if lost[most] >= 0.5 else "no earlier task loses 0.5 points or more"
    title = f"The mean accuracy over the tasks seen goes from {first} to {final}; {loss}"
    text = (
        "Lines of the accuracy on each task from when it was learned to the end, and their mean. The mean after each "
        f"task: {tasks_text(np.array(data.means))}."
    )
    return Plot("accuracy-history", title, text, lambda: _draw_history(data))


def _draw_history(data: MatrixData) -> Figure:
    count = len(data.accuracy)
    figure, axes = new_axes(3.6)
    mark, width = "o" if count <= 25 else None, 1.4 if count <= 12 else 0.8
    step = -(-count // 50)  # with very many tasks, lines skip points that could not be seen
    for task, shade in enumerate(task_colors(count)):
        steps = np.array([*range(task, count - 1, step), count - 1])
        axes.plot(steps + 1, data.accuracy[steps, task], color=shade, lw=width, marker=mark, ms=3)
    axes.plot(range(1, count + 1), data.means, color=INK, lw=3, marker=mark, ms=4, zorder=3)
    axes.set(ylim=(0, 103), xlim=(1 - 0.02 * count, 1.005 * count), xticks=range(1, count + 1, -(-count // 20)))
    axes.grid(axis="y")
    axes.set(axisbelow=True, xlabel="tasks learned", ylabel="accuracy in %")
    _label_ends(axes, data)
    return figure


def _label_ends(axes: Axes, data: MatrixData) -> None:
    """The task and the last value of each line, or of some of many."""
    count, shades = len(data.accuracy), task_colors(len(data.accuracy))
    named = evenly_chosen(count, count if count <= MAX_LABELS else 8)
    ends = [*(float(data.accuracy[-1, task]) for task in named), data.means[-1]]
    names = [*(task_text(task, data.labels[task]) for task in named), "mean"]
    lines = [*(shades[task] for task in named), INK]
    places, shares = spread_labels(ends, 5.2, 0, 103), share_texts(ends)
    for end, place, name, share, color in zip(ends, places, names, shares, lines, strict=True):
        arrow = {"arrowstyle": "-", "color": color, "lw": 0.8, "shrinkA": 0, "shrinkB": 2, "relpos": (0, 0.5)}
        style: dict[str, Any] = {
            "va": "center",
            "weight": "bold" if name == "mean" else "normal",
            "annotation_clip": False,
        }
        axes.annotate(f"{name}: {share}", (count, end), (1.03 * count, place), arrowprops=arrow, **style)
