"""The accuracy matrix, the accuracy on each task while later ones are learned, and what is confused in the end."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spacenet.experiments.run import RunData
from spacenet.report.plots import drawing
from spacenet.report.plots.plot import INK, Axes, Figure, Plot, new_axes, task_colors

MAX_LABELS = 12  # lines up to which each has a label
MAX_NAMED = 5  # confusions that the text alternative names
WELL_SEPARATED = 95.0  # if in every task this percentage of the samples is assigned to the task, the title says that
LETTERS = 80  # letters that fit side by side under the cells
MAX_NAME = 16  # letters of a name beside the cells


@dataclass(frozen=True)
class MatrixData:
    """The accuracy on each task after each task."""

    accuracy: NDArray[np.float64]  # (after task, on task) in %; NaN for tasks still to come
    means: tuple[float, ...]  # over the tasks learned so far, after each task
    acc: float
    bwt: float
    labels: tuple[tuple[str, ...], ...]  # the classes of each task


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
        f"After the last task: {drawing.tasks_text(data.accuracy[-1])}. ACC {data.acc:.1f} %, BWT {bwt:+z.1f}."
    )
    return Plot("accuracy-matrix", title, text, lambda: _draw_matrix(data))


def _draw_matrix(data: MatrixData) -> Figure:
    count = len(data.accuracy)
    numbered, few = count <= drawing.MAX_NUMBERED, count <= 6
    figure, axes = new_axes(min(1.2 + 0.45 * count, 5.4))
    texts = drawing.cell_texts(data.accuracy, 1 if count <= 10 else 0) if numbered else None
    drawing.draw_cells(axes, data.accuracy, texts, "accuracy in %")
    drawing.name_ticks(
        axes.xaxis, [drawing.task_text(i, labels) if few else str(i + 1) for i, labels in enumerate(data.labels)]
    )
    drawing.name_ticks(axes.yaxis, [f"task {i + 1}" if few else str(i + 1) for i in range(count)])
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
    first, final, learned, kept = drawing.share_texts(
        [data.means[0], data.means[-1], data.accuracy[most, most], last[most]]
    )
    loss = f"task {most + 1} loses most, from {learned} to {kept}"
    loss = loss if lost[most] >= 0.5 else "no earlier task loses 0.5 points or more"
    title = f"The mean accuracy over the tasks seen goes from {first} to {final}; {loss}"
    text = (
        "Lines of the accuracy on each task from when it was learned to the end, and their mean. The mean after each "
        f"task: {drawing.tasks_text(np.array(data.means))}."
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
    named = drawing.evenly_chosen(count, count if count <= MAX_LABELS else 8)
    ends = [*(float(data.accuracy[-1, task]) for task in named), data.means[-1]]
    names = [*(drawing.task_text(task, data.labels[task]) for task in named), "mean"]
    lines = [*(shades[task] for task in named), INK]
    places, shares = drawing.spread_labels(ends, 5.2, 0, 103), drawing.share_texts(ends)
    for end, place, name, share, color in zip(ends, places, names, shares, lines, strict=True):
        arrow = {"arrowstyle": "-", "color": color, "lw": 0.8, "shrinkA": 0, "shrinkB": 2, "relpos": (0, 0.5)}
        style: dict[str, Any] = {
            "va": "center",
            "weight": "bold" if name == "mean" else "normal",
            "annotation_clip": False,
        }
        axes.annotate(f"{name}: {share}", (count, end), (1.03 * count, place), arrowprops=arrow, **style)


@dataclass(frozen=True)
class ConfusionData:
    """Which part of the test samples of each class or task was predicted as each."""

    shares: NDArray[np.float64]  # (true, predicted) in %; NaN where there are no test samples
    names: tuple[str, ...]
    starts: tuple[int, ...]  # the first class of each task

    def largest(self, count: int = MAX_NAMED) -> list[tuple[int, int, float]]:
        """The largest confusions: true, predicted, percent."""
        wrong = np.nan_to_num(self.shares)
        np.fill_diagonal(wrong, 0.0)
        order = np.argsort(-wrong, axis=None, kind="stable")[:count]
        places = [divmod(int(place), len(wrong)) for place in order]
        return [(*place, float(wrong[place])) for place in places if wrong[place] > 0]


def class_confusion_data(run: RunData) -> ConfusionData | None:
    """Which class is predicted as which; None if the run did not record it."""
    counts, names = run.analysis.confusion, [label for labels in run.labels for label in labels]
    if counts is None or len(counts) != len(names):
        return None
    starts = np.cumsum([0, *map(len, run.labels)])[:-1]
    return ConfusionData(_shares(counts.numpy()), tuple(names), tuple(starts.tolist()))


def task_confusion_data(run: RunData) -> ConfusionData | None:
    """How often a sample of one task is predicted as a class of another; None if the run did not record it."""
    classes, counts = class_confusion_data(run), run.analysis.confusion
    if classes is None or counts is None:
        return None
    together = np.add.reduceat(np.add.reduceat(counts.numpy(), classes.starts, 0), classes.starts, 1)
    names = tuple(drawing.task_text(number, labels, 7) for number, labels in enumerate(run.labels))
    return ConfusionData(_shares(together), names, tuple(range(len(names))))


def _shares(counts: NDArray[np.int32]) -> NDArray[np.float64]:
    total = counts.sum(1, keepdims=True)
    return np.where(total > 0, 100.0 * counts / np.maximum(total, 1), np.nan)


def class_confusion_plot(data: ConfusionData) -> Plot | None:
    """The heat map; None for a single class."""
    if len(data.names) < 2:
        return None
    worst = [f"{data.names[a]} as {data.names[b]} {drawing.share_text(share)}" for a, b, share in data.largest()]
    title = "No class is confused with another"
    for a, b, share in data.largest(1):
        title = f"The largest confusion: {drawing.share_text(share)} of {data.names[a]} is predicted as {data.names[b]}"
    text = (
        "Heat map of the part of each true class's test samples (rows) that is predicted as each class (columns), "
        f"after the last task. The largest confusions: {', '.join(worst) or 'none'}."
    )
    return Plot("class-confusion", title, text, lambda: _draw(data, "class"))


def task_confusion_plot(data: ConfusionData) -> Plot | None:
    """The heat map; None for a single task."""
    if len(data.names) < 2:
        return None
    kept, title = np.diagonal(data.shares), "Every sample is predicted as a class of its own task"
    least = float(np.nanmin(kept))
    for a, b, share in data.largest(1):
        own, other = drawing.share_text(float(kept[a])), drawing.share_text(share)
        title = f"{own} of task {a + 1} is predicted as a class of that task, {other} as one of task {b + 1}"
        if least >= WELL_SEPARATED:
            title = f"At least {math.floor(10 * least) / 10:.1f} % of each task is predicted as a class of that task; "
            title += f"the largest confusion is {other} of task {a + 1} with task {b + 1}"
    text = (
        "Heat map of the part of each task's test samples (rows) that is predicted as a class of each task (columns), "
        f"after the last task. Predicted as a class of their own task: {drawing.tasks_text(kept)}."
    )
    return Plot("task-confusion", title, text, lambda: _draw(data, "task"))


def _draw(data: ConfusionData, what: str) -> Figure:
    count, by_class = len(data.names), what == "class"
    numbered = count <= drawing.MAX_NUMBERED
    names = [name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…" for name in data.names]
    if not by_class and count > 6:
        names = [str(number + 1) for number in range(count)]
    longest = max(map(len, names))
    rotated = count * (longest + 2) > LETTERS or (count > 8 and longest > 3)
    height = min(max(1.2 + 0.4 * count, 2.2), 6.2 if numbered else 5.2)
    figure, axes = new_axes(height + (0.08 * longest if rotated else 0.0))
    texts = drawing.cell_texts(data.shares, zeros=False) if numbered else None
    unit, gamma = f"% of the samples of the true {what}", 1.0 if numbered else 0.5
    drawing.draw_cells(axes, data.shares, texts, unit, gamma=gamma)
    axes.set_aspect("equal" if count > 8 else "auto")
    drawing.name_ticks(axes.xaxis, names, rotation=90 if rotated else 0)
    drawing.name_ticks(axes.yaxis, names)
    separated = by_class and 1 < len(data.starts) <= min(drawing.MAX_NUMBERED, count - 1)
    for start in data.starts[1:] if separated else ():
        for draw_line in (axes.axhline, axes.axvline):
            draw_line(start - 0.5, color=drawing.BRIGHT, lw=1.6 if numbered else 0.6)
    predicted = "predicted class" if by_class else "task of the predicted class"
    unit = f" (% of the true {what}'s samples)" if numbered else ""
    axes.set(ylabel=f"true {what}", xlabel=predicted + unit + ("; lines separate tasks" if separated else ""))
    return figure
