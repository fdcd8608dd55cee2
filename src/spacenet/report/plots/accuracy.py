"""The accuracy matrix, the accuracy on each task while later ones are learned, and what is confused in the end."""

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from spacenet.experiments.run import RunData
from spacenet.report.plots import drawing
from spacenet.report.plots.drawing import Percentages
from spacenet.report.plots.plot import INK, Figure, Plot, new_axes, task_colors
from spacenet.report.table import Table
from spacenet.report.tables import matrix_table

MAX_LABELS = 12  # lines up to which each has a label
MAX_NAMED = 5  # confusions that the text alternative names
WELL_SEPARATED = 95.0  # if in every task this percentage of the samples is assigned to the task, the title says that
LETTERS = 80  # letters that fit side by side under the cells
MAX_NAME = 16  # letters of a name beside the cells


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


def matrix_plot(run: RunData) -> Plot | None:
    """The heat map; None for a single task."""
    matrix, acc, bwt = learned_matrix(run), run.metrics["acc"], run.metrics["bwt"]
    if len(matrix) < 2:
        return None
    change = f"{'lost' if bwt < 0 else 'gained'} {abs(bwt):.1f} points on average"
    change = "kept their accuracy" if abs(bwt) < 0.05 else change
    title = f"After {len(matrix)} tasks, the mean accuracy is {acc:.1f} % (ACC); earlier tasks {change} (BWT)"
    text = (
        "Heat map of the accuracy on each task (columns) after learning each task (rows), in percent. "
        f"After the last task: {drawing.tasks_text(matrix[-1])}. ACC {acc:.1f} %, BWT {bwt:+z.1f}."
    )
    return Plot("accuracy-matrix", title, text, lambda: _draw_matrix(matrix, run.labels), matrix_table(run))


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


def history_plot(run: RunData) -> Plot | None:
    """A line for each task, and the mean; None for a single task."""
    matrix = learned_matrix(run)
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
    return Plot("accuracy-history", title, text, lambda: _draw_history(matrix, run.labels))


def _draw_history(matrix: Percentages, labels: Sequence[Sequence[str]]) -> Figure:
    count, shades = len(matrix), task_colors(len(matrix))
    figure, axes = new_axes(3.6)
    mark, width = "o" if count <= 25 else None, 1.4 if count <= 12 else 0.8
    step = -(-count // 50)  # with very many tasks, lines skip points that could not be seen
    for task, shade in enumerate(shades):
        measured = np.flatnonzero(~np.isnan(matrix[:, task]))
        steps = np.array([*measured[:-1:step], count - 1])
        axes.plot(steps + 1, matrix[steps, task], color=shade, lw=width, marker=mark, ms=3)
    means = mean_history(matrix)
    known = np.flatnonzero(~np.isnan(means))
    axes.plot(known + 1, np.array(means)[known], color=INK, lw=3, marker=mark, ms=4, zorder=3)
    axes.set(ylim=(0, 103), xlim=(1 - 0.02 * count, 1.005 * count), xticks=range(1, count + 1, -(-count // 20)))
    axes.grid(axis="y")
    axes.set(axisbelow=True, xlabel="tasks learned", ylabel="accuracy in %")
    named = drawing.evenly_chosen(count, count if count <= MAX_LABELS else 8)
    names = [*(drawing.task_text(task, labels[task]) for task in named), "mean"]
    ends, colors = [*matrix[-1, named], means[-1]], [*(shades[task] for task in named), INK]
    places, shares = drawing.spread_labels(ends, 5.2, 0, 103), drawing.share_texts(ends)
    for end, place, name, share, color in zip(ends, places, names, shares, colors, strict=True):
        arrow = {"arrowstyle": "-", "color": color, "lw": 0.8, "shrinkA": 0, "shrinkB": 2, "relpos": (0, 0.5)}
        style: dict[str, Any] = {"va": "center", "weight": "bold" if name == "mean" else "normal"}
        style |= {"arrowprops": arrow, "annotation_clip": False}
        axes.annotate(f"{name}: {share}", (count, end), (1.03 * count, place), **style)
    return figure


def shares_predicted(run: RunData, by: Literal["class", "task"]) -> Percentages | None:
    """Which part of the test samples of each class or task was predicted as each, in %; NaN without test samples.

    None for a single class or task, or if the run did not record it.
    """
    counts, sizes = run.analysis.confusion, [len(labels) for labels in run.labels]
    if counts is None or len(counts) != sum(sizes) or len(sizes if by == "task" else counts) < 2:
        return None
    found, starts = counts.numpy(), np.cumsum([0, *sizes])[:-1]
    if by == "task":
        found = np.add.reduceat(np.add.reduceat(found, starts, 0), starts, 1)
    total = found.sum(1, keepdims=True)
    return np.where(total > 0, 100.0 * found / np.maximum(total, 1), np.nan)


def largest_confusions(shares: Percentages, count: int) -> list[tuple[int, int, float]]:
    """True, predicted, percent."""
    wrong = np.nan_to_num(shares)
    np.fill_diagonal(wrong, 0.0)
    order = np.argsort(-wrong, axis=None, kind="stable")[:count]
    places = [divmod(int(place), len(wrong)) for place in order]
    return [(*place, float(wrong[place])) for place in places if wrong[place] > 0]


def class_confusion_plot(run: RunData) -> Plot | None:
    """The heat map; None for a single class."""
    counts, shares = run.analysis.confusion, shares_predicted(run, "class")
    if counts is None or shares is None:
        return None
    names = [label for labels in run.labels for label in labels]
    worst = [(names[a], names[b], drawing.share_text(share)) for a, b, share in largest_confusions(shares, MAX_NAMED)]
    title = "No class is confused with another"
    for true, predicted, share in worst[:1]:
        title = f"The largest confusion: {share} of {true} is predicted as {predicted}"
    each = ", ".join(f"{true} as {predicted} {share}" for true, predicted, share in worst)
    text = (
        "Heat map of the part of each true class's test samples (rows) that is predicted as each class (columns), "
        f"after the last task. The largest confusions: {each or 'none'}."
    )
    starts = np.cumsum([len(labels) for labels in run.labels])[:-1].tolist()
    rows = [[name, *(f"{count:,}" for count in row)] for name, row in zip(names, counts.tolist(), strict=True)]
    table = Table("Test samples by true class (row) and predicted class (column)", ["class", *names], rows)
    return Plot("class-confusion", title, text, lambda: _draw_confusion(shares, names, "class", starts), table)


def task_confusion_plot(run: RunData) -> Plot | None:
    """The heat map; None for a single task."""
    shares = shares_predicted(run, "task")
    if shares is None:
        return None
    kept, title = np.diagonal(shares), "Every sample is predicted as a class of its own task"
    least = float(np.nanmin(kept))
    for a, b, share in largest_confusions(shares, 1):
        own, other = drawing.share_text(float(kept[a])), drawing.share_text(share)
        title = f"{own} of task {a + 1} is predicted as a class of that task, {other} as one of task {b + 1}"
        if least >= WELL_SEPARATED:
            title = f"At least {math.floor(10 * least) / 10:.1f} % of each task is predicted as a class of that task; "
            title += f"the largest confusion is {other} of task {a + 1} with task {b + 1}"
    text = (
        "Heat map of the part of each task's test samples (rows) that is predicted as a class of each task (columns), "
        f"after the last task. Predicted as a class of their own task: {drawing.tasks_text(kept)}."
    )
    names = drawing.task_names(run.labels, 7)
    return Plot("task-confusion", title, text, lambda: _draw_confusion(shares, names, "task"))


def _draw_confusion(shares: Percentages, names: Sequence[str], what: str, starts: Sequence[int] = ()) -> Figure:
    """`starts`: the first class of each task but the first; lines separate them."""
    count, numbered = len(names), len(names) <= drawing.MAX_NUMBERED
    names = [name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…" for name in names]
    longest = max(map(len, names))
    rotated = count * (longest + 2) > LETTERS or (count > 8 and longest > 3)
    height = min(max(1.2 + 0.4 * count, 2.2), 6.2 if numbered else 5.2)
    figure, axes = new_axes(height + (0.08 * longest if rotated else 0.0))
    texts = drawing.cell_texts(np.where(shares.round() > 0, shares, np.nan)) if numbered else None
    drawing.draw_cells(axes, shares, texts, f"% of the samples of the true {what}", gamma=1.0 if numbered else 0.5)
    axes.set_aspect("equal" if count > 8 else "auto")
    drawing.name_ticks(axes.xaxis, names, rotation=90 if rotated else 0)
    drawing.name_ticks(axes.yaxis, names)
    separated = 0 < len(starts) < min(drawing.MAX_NUMBERED, count - 1)
    for start in starts if separated else ():
        for draw_line in (axes.axhline, axes.axvline):
            draw_line(start - 0.5, color=drawing.BRIGHT, lw=1.6 if numbered else 0.6)
    predicted = "predicted class" if what == "class" else "task of the predicted class"
    unit = f" (% of the true {what}'s samples)" if numbered else ""
    axes.set(ylabel=f"true {what}", xlabel=predicted + unit + ("; lines separate tasks" if separated else ""))
    return figure
