"""The accuracy matrix: as a heat map, and as each task's course while later ones are learned."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spacenet.report.plots.areas import some_of
from spacenet.report.plots.cells import MOST_NUMBERS, draw_cells, draw_scale, name_ticks, numbers
from spacenet.report.plots.labels import share_texts, spread_out, task_text, tasks_text
from spacenet.report.plots.plot import INK, Plot, colours, new_figure
from spacenet.report.run_data import RunFacts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_LABELS = 12
"""Lines up to which each gets a label."""


@dataclass(frozen=True)
class MatrixData:
    """How well each task is known after each task."""

    accuracy: NDArray[np.float64]
    """(after task, on task) in %; not a number where a task was still to come."""
    means: tuple[float, ...]
    """Over the tasks learned so far, after each task."""
    acc: float
    bwt: float
    labels: tuple[tuple[str, ...], ...]
    """The classes of each task."""


def matrix_data(facts: RunFacts) -> MatrixData:
    """The learned tasks' part of the accuracy matrix."""
    learned = len(facts.metrics["matrix"])
    accuracy = np.array([row[:learned] for row in facts.metrics["matrix"]], float)
    accuracy[np.triu_indices(learned, 1)] = np.nan
    means = tuple(float(row[: number + 1].mean()) for number, row in enumerate(accuracy))
    labels = tuple(tuple(task) for task in facts.labels)
    return MatrixData(accuracy, means, facts.metrics["acc"], facts.metrics["bwt"], labels)


def matrix_picture(data: MatrixData) -> Plot | None:
    """The heat map; nothing to see with a single task."""
    count = len(data.accuracy)
    if count < 2:
        return None
    each = tasks_text(data.accuracy[-1])
    return Plot(
        "accuracy-matrix",
        f"In the end {count} tasks are known to {data.acc:.1f} % on average (ACC); {_change(data.bwt, count)} (BWT)",
        f"Heat map of the accuracy on each task (columns) after learning each task (rows), in percent. "
        f"After the last task: {each}. ACC {data.acc:.1f} %, BWT {data.bwt:+.1f}.",
        lambda: _draw_matrix(data),
    )


def _change(bwt: float, count: int) -> str:
    """BWT in words."""
    if abs(bwt) < 0.05:
        return "what was learned earlier is still known as well as then"
    moved = f"{'lost' if bwt < 0 else 'gained'} {abs(bwt):.1f} points"
    return f"since learned, the first has {moved}" if count == 2 else f"since learned, earlier ones {moved} on average"


def _draw_matrix(data: MatrixData) -> "Figure":
    count = len(data.accuracy)
    numbered = count <= MOST_NUMBERS
    figure = new_figure(min(1.2 + 0.45 * count, 5.4), 7.2)
    axes = figure.subplots()
    image = draw_cells(axes, data.accuracy, numbers(data.accuracy, 1 if count <= 10 else 0) if numbered else None)
    axes.set_aspect("auto")
    if not numbered:
        draw_scale(axes, image, "accuracy in %")
    few = count <= 6
    columns = [task_text(i, labels) if few else str(i + 1) for i, labels in enumerate(data.labels)]
    name_ticks(axes.xaxis, columns)
    name_ticks(axes.yaxis, [f"task {i + 1}" if few else str(i + 1) for i in range(count)])
    axes.set_xlabel("accuracy in % on" if few else "accuracy in % on task")
    axes.set_ylabel("after learning" if few else "after learning task")
    return figure


def course_picture(data: MatrixData) -> Plot | None:
    """A line for each task, and the mean; nothing to see with a single task."""
    count = len(data.accuracy)
    if count < 2:
        return None
    last = data.accuracy[-1]
    lost = np.diagonal(data.accuracy) - last
    most = int(lost[:-1].argmax())
    first, final, learned, kept = share_texts([data.means[0], data.means[-1], data.accuracy[most, most], last[most]])
    title = f"The mean over the tasks seen goes from {first} to {final}"
    if lost[most] >= 0.5:
        title += f"; task {most + 1} loses most, from {learned} to {kept}"
    else:
        title += "; no earlier task loses anything that could be seen"
    course = tasks_text(np.array(data.means))
    return Plot(
        "accuracy-course",
        title,
        f"Lines of the accuracy on each task from when it was learned to the end, and their mean. The mean after each: "
        f"{course}.",
        lambda: _draw_course(data),
    )


def _draw_course(data: MatrixData) -> "Figure":
    count = len(data.accuracy)
    figure = new_figure(3.6)
    axes = figure.subplots()
    shades = colours(count)
    mark = "o" if count <= 25 else None
    step = -(-count // 50)  # of very many tasks, lines take every second step: nobody would see the others
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
    _name_ends(axes, data, shades)
    return figure


def _name_ends(axes: "Axes", data: MatrixData, shades: Sequence[str]) -> None:
    """What each line is and where it ends, or some of many; labels keep apart."""
    count = len(data.accuracy)
    named = some_of(count, count if count <= MOST_LABELS else 8)
    ends = [*(float(data.accuracy[-1, task]) for task in named), data.means[-1]]
    names = [*(task_text(task, data.labels[task]) for task in named), "mean"]
    lines = [*(shades[task] for task in named), INK]
    places, shares = spread_out(ends, 5.2, 0, 103), share_texts(ends)
    for end, place, name, share, colour in zip(ends, places, names, shares, lines, strict=True):
        axes.annotate(
            f"{name}: {share}",
            (count, end),
            (1.03 * count, place),
            va="center",
            fontweight="bold" if name == "mean" else "normal",
            arrowprops={"arrowstyle": "-", "color": colour, "lw": 0.8, "shrinkA": 0, "shrinkB": 2, "relpos": (0, 0.5)},
            annotation_clip=False,
        )
