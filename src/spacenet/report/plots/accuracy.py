"""The accuracy matrix, and the accuracy on each task while later ones are learned; of several seeds their mean."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from spacenet.experiments.run import RunData
from spacenet.report.plots import drawing
from spacenet.report.plots.drawing import Percentages
from spacenet.report.plots.plot import INK, Axes, Figure, Plot, new_axes, task_colors
from spacenet.report.tables import matrix_table
from spacenet.utils.text import MeanStd

MAX_LABELS = 12  # lines up to which each has a label
OPACITY = 0.12  # opacity of the areas around lines


def learned_matrix(run: RunData) -> Percentages:
    """The learned tasks' part of the accuracy matrix, (after task, on task); NaN for tasks still to come, and
    where nothing was measured."""
    learned = len(run.metrics["matrix"])
    matrix = np.array([row[:learned] for row in run.metrics["matrix"]], float)
    matrix[np.triu_indices(learned, 1)] = np.nan
    return matrix


def mean_history(matrix: Percentages) -> list[float]:
    """The mean over the tasks learned so far, after each task; NaN where not all were measured."""
    return [float(row[: number + 1].mean()) for number, row in enumerate(matrix)]


def matrix_plot(runs: Sequence[RunData]) -> Plot | None:
    """The heat map of one run, or of the mean of several; None for a single task."""
    matrix = np.mean([learned_matrix(run) for run in runs], axis=0)
    if len(matrix) < 2:
        return None
    acc, bwt = (MeanStd.of([run.metrics[name] for run in runs]).mean for name in ("acc", "bwt"))
    change = f"{'lost' if bwt < 0 else 'gained'} {abs(bwt):.1f} points on average"
    change = "kept their accuracy" if abs(bwt) < 0.05 else change
    title = f"After {len(matrix)} tasks, the mean accuracy is {acc:.1f} % (ACC); earlier tasks {change} (BWT)"
    text = (
        "Heat map of the accuracy on each task (columns) after learning each task (rows), in percent. "
        f"After the last task: {drawing.tasks_text(matrix[-1])}. ACC {acc:.1f} %, BWT {bwt:+z.1f}."
    )
    return Plot("accuracy-matrix", title, text, lambda: _draw_matrix(matrix, runs[0].labels), matrix_table(*runs))


def _draw_matrix(matrix: Percentages, labels: Sequence[Sequence[str]]) -> Figure:
    count, few = len(matrix), len(matrix) <= drawing.FEW_TASKS
    figure, axes = new_axes(min(1.2 + 0.45 * count, 5.4))
    texts = drawing.cell_texts(matrix, 1 if count <= 10 else 0) if count <= drawing.MAX_NUMBERED else None
    drawing.draw_cells(axes, matrix, texts, "accuracy in %")
    drawing.name_ticks(axes.xaxis, drawing.task_names(labels))
    drawing.name_ticks(axes.yaxis, [f"task {i + 1}" if few else str(i + 1) for i in range(count)])
    end = "" if few else " task"
    axes.set(xlabel=f"accuracy in % on{end}", ylabel=f"after learning{end}")
    return figure


def history_plot(runs: Sequence[RunData]) -> Plot | None:
    """A line for each task, and the mean; of several runs the mean ± standard deviation. None for a single task."""
    matrices = np.array([learned_matrix(run) for run in runs])
    matrix = matrices.mean(0)
    if len(matrix) < 2:
        return None
    last, means = matrix[-1], mean_history(matrix)
    lost = np.diagonal(matrix) - last
    most = int(lost[:-1].argmax())
    first, final, learned, kept = drawing.share_texts([means[0], means[-1], matrix[most, most], last[most]])
    loss = f"task {most + 1} loses most, from {learned} to {kept}"
    loss = loss if lost[most] >= 0.5 else "no earlier task loses 0.5 points or more"
    title = f"The mean accuracy over the tasks seen goes from {first} to {final}; {loss}"
    text = (
        "Lines of the accuracy on each task from when it was learned to the end, and their mean. The mean after each "
        f"task: {drawing.tasks_text(means)}."
    )
    return Plot("accuracy-history", title, text, lambda: _draw_history(matrices, runs[0].labels))


def _draw_history(matrices: Percentages, labels: Sequence[Sequence[str]]) -> Figure:
    """`matrices`: (seed, after task, on task)."""
    matrix, histories = matrices.mean(0), np.array([mean_history(matrix) for matrix in matrices])
    count, shades = len(matrix), task_colors(len(matrix))
    figure, axes = new_axes(3.6)
    mark, width = "o" if count <= 25 else None, 1.4 if count <= 12 else 0.8
    step = -(-count // 50)  # with very many tasks, lines skip points that could not be seen
    for task, shade in enumerate(shades):
        measured = np.flatnonzero(~np.isnan(matrix[:, task]))
        steps = np.array([*measured[:-1:step], count - 1])
        axes.plot(steps + 1, matrix[steps, task], color=shade, lw=width, marker=mark, ms=3)
        _shade(axes, steps, matrices[:, steps, task], shade)
    means = mean_history(matrix)
    known = np.flatnonzero(~np.isnan(means))
    axes.plot(known + 1, np.array(means)[known], color=INK, lw=3, marker=mark, ms=4, zorder=3)
    _shade(axes, known, histories[:, known], INK)
    axes.set(ylim=(0, 103), xlim=(1 - 0.02 * count, 1.005 * count), xticks=range(1, count + 1, -(-count // 20)))
    axes.grid(axis="y")
    axes.set(axisbelow=True, xlabel="tasks learned", ylabel="accuracy in %")
    _label_ends(axes, matrix[-1], means[-1], labels, shades)
    return figure


def _shade(axes: Axes, steps: Any, values: Percentages, color: str) -> None:
    """The area of ± one standard deviation over the seeds, (seed, step), if there are several."""
    if len(values) > 1:
        mean, std = values.mean(0), values.std(0, ddof=1)
        low, high = (np.clip(edge, 0, 100) for edge in (mean - std, mean + std))
        axes.fill_between(steps + 1, low, high, color=color, alpha=OPACITY, linewidth=0)


def _label_ends(
    axes: Axes, last: Percentages, mean: float, labels: Sequence[Sequence[str]], shades: Sequence[str]
) -> None:
    """Name the lines at their ends, of many tasks some."""
    count = len(last)
    named = drawing.evenly_chosen(count, count if count <= MAX_LABELS else 8)
    names = [*(drawing.task_text(task, labels[task]) for task in named), "mean"]
    ends, colors = [*last[named], mean], [*(shades[task] for task in named), INK]
    places, shares = drawing.spread_labels(ends, 5.2, 0, 103), drawing.share_texts(ends)
    for end, place, name, share, color in zip(ends, places, names, shares, colors, strict=True):
        arrow = {"arrowstyle": "-", "color": color, "lw": 0.8, "shrinkA": 0, "shrinkB": 2, "relpos": (0, 0.5)}
        style: dict[str, Any] = {"va": "center", "weight": "bold" if name == "mean" else "normal"}
        style |= {"arrowprops": arrow, "annotation_clip": False}
        axes.annotate(f"{name}: {share}", (count, end), (1.03 * count, place), **style)
