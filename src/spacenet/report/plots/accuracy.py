"""The accuracy matrix: as a heat map, and as the accuracy on each task while later tasks are learned."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

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
from spacenet.report.plots.plot import INK, Plot, new_figure, task_colors

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_LABELS = 12
"""Lines up to which each has a label."""


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
    labels = tuple(tuple(task) for task in run.labels)
    return MatrixData(accuracy, means, run.metrics["acc"], run.metrics["bwt"], labels)


def matrix_plot(data: MatrixData) -> Plot | None:
    """The heat map; None for a single task."""
    count = len(data.accuracy)
    if count < 2:
        return None
    each = tasks_text(data.accuracy[-1])
    return Plot(
        "accuracy-matrix",
        f"After {count} tasks, the mean accuracy is {data.acc:.1f} % (ACC); {_change_text(data.bwt)} (BWT)",
        f"Heat map of the accuracy on each task (columns) after learning each task (rows), in percent. "
        f"After the last task: {each}. ACC {data.acc:.1f} %, BWT {data.bwt:+.1f}.",
        lambda: _draw_matrix(data),
    )


def _change_text(bwt: float) -> str:
    """BWT in words."""
    if abs(bwt) < 0.05:
        return "earlier tasks kept their accuracy"
    return f"earlier tasks {'lost' if bwt < 0 else 'gained'} {abs(bwt):.1f} points on average"


def _draw_matrix(data: MatrixData) -> "Figure":
    count = len(data.accuracy)
    numbered = count <= MAX_NUMBERED
    figure = new_figure(min(1.2 + 0.45 * count, 5.4), 7.2)
    axes = figure.subplots()
    image = draw_cells(axes, data.accuracy, cell_texts(data.accuracy, 1 if count <= 10 else 0) if numbered else None)
    axes.set_aspect("auto")
    if not numbered:
        draw_color_bar(axes, image, "accuracy in %")
    few = count <= 6
    columns = [task_text(i, labels) if few else str(i + 1) for i, labels in enumerate(data.labels)]
    name_ticks(axes.xaxis, columns)
    name_ticks(axes.yaxis, [f"task {i + 1}" if few else str(i + 1) for i in range(count)])
    axes.set_xlabel("accuracy in % on" if few else "accuracy in % on task")
    axes.set_ylabel("after learning" if few else "after learning task")
    return figure


def history_plot(data: MatrixData) -> Plot | None:
    """A line for each task, and the mean; None for a single task."""
    count = len(data.accuracy)
    if count < 2:
        return None
    last = data.accuracy[-1]
    lost = np.diagonal(data.accuracy) - last
    most = int(lost[:-1].argmax())
    first, final, learned, kept = share_texts([data.means[0], data.means[-1], data.accuracy[most, most], last[most]])
    title = f"The mean accuracy over the tasks seen goes from {first} to {final}"
    if lost[most] >= 0.5:
        title += f"; task {most + 1} loses most, from {learned} to {kept}"
    else:
        title += "; no earlier task loses 0.5 points or more"
    means = tasks_text(np.array(data.means))
    return Plot(
        "accuracy-history",
        title,
        f"Lines of the accuracy on each task from when it was learned to the end, and their mean. The mean after each "
        f"task: {means}.",
        lambda: _draw_history(data),
    )


def _draw_history(data: MatrixData) -> "Figure":
    count = len(data.accuracy)
    figure = new_figure(3.6)
    axes = figure.subplots()
    shades = task_colors(count)
    mark = "o" if count <= 25 else None
    step = -(-count // 50)  # with very many tasks, lines skip points that could not be seen
    for task in range(count):
        steps = np.array([*range(task, count - 1, step), count - 1])
        accuracy, width = data.accuracy[steps, task], 1.4 if count <= 12 else 0.8
        axes.plot(steps + 1, accuracy, color=shades[task], lw=width, marker=mark, ms=3)
    axes.plot(range(1, count + 1), data.means, color=INK, lw=3, marker=mark, ms=4, zorder=3)
    axes.set_ylim(0, 103)
    axes.set_xlim(1 - 0.02 * count, count + 0.005 * count)
    axes.set_xticks(range(1, count + 1, -(-count // 20)))
    axes.grid(axis="y")
    axes.set_axisbelow(True)
    axes.set_xlabel("tasks learned")
    axes.set_ylabel("accuracy in %")
    _label_ends(axes, data, shades)
    return figure


def _label_ends(axes: "Axes", data: MatrixData, shades: Sequence[str]) -> None:
    """The task and the last value of each line, or of some of many."""
    count = len(data.accuracy)
    named = evenly_chosen(count, count if count <= MAX_LABELS else 8)
    ends = [*(float(data.accuracy[-1, task]) for task in named), data.means[-1]]
    names = [*(task_text(task, data.labels[task]) for task in named), "mean"]
    lines = [*(shades[task] for task in named), INK]
    places, shares = spread_labels(ends, 5.2, 0, 103), share_texts(ends)
    for end, place, name, share, color in zip(ends, places, names, shares, lines, strict=True):
        axes.annotate(
            f"{name}: {share}",
            (count, end),
            (1.03 * count, place),
            va="center",
            fontweight="bold" if name == "mean" else "normal",
            arrowprops={"arrowstyle": "-", "color": color, "lw": 0.8, "shrinkA": 0, "shrinkB": 2, "relpos": (0, 0.5)},
            annotation_clip=False,
        )
