"""Which classes and which tasks are confused after the last task."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spacenet.experiments.run import RunData
from spacenet.report.plots.drawing import BRIGHT, MAX_NUMBERED, cell_texts, draw_cells, draw_color_bar, name_ticks
from spacenet.report.plots.labels import share_text, task_text, tasks_text
from spacenet.report.plots.plot import Plot, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_NAMED = 5
"""Confusions that the text alternative names."""
WELL_SEPARATED = 95.0
"""If in every task this percentage of the samples is assigned to the task, the title says that."""
LETTERS = 80
"""Letters that fit side by side under the cells."""
MAX_NAME = 16
"""Letters of a name beside the cells."""


@dataclass(frozen=True)
class ConfusionData:
    """Which part of the test samples of each class or task was predicted as each."""

    shares: NDArray[np.float64]
    """(true, predicted) in %; NaN where there are no test samples."""
    names: tuple[str, ...]
    starts: tuple[int, ...]
    """The first class of each task."""

    def largest(self, count: int = MAX_NAMED) -> list[tuple[int, int, float]]:
        """The largest confusions: true, predicted, percent."""
        wrong = np.nan_to_num(self.shares)
        np.fill_diagonal(wrong, 0.0)
        order = np.argsort(-wrong, axis=None, kind="stable")[:count]
        places = [(int(place) // len(wrong), int(place) % len(wrong)) for place in order]
        return [(row, column, float(wrong[row, column])) for row, column in places if wrong[row, column] > 0]


def class_confusion_data(run: RunData) -> ConfusionData | None:
    """Which class is predicted as which; None if the run did not record it."""
    counts, names = run.analysis.confusion, [label for labels in run.labels for label in labels]
    if counts is None or len(counts) != len(names):
        return None
    return ConfusionData(_shares(counts.numpy()), tuple(names), tuple(_starts(run.labels)))


def task_confusion_data(run: RunData) -> ConfusionData | None:
    """How often a sample of one task is predicted as a class of another; None if the run did not record it."""
    counts, starts = run.analysis.confusion, _starts(run.labels)
    if counts is None or len(counts) != sum(map(len, run.labels)):
        return None
    together = np.add.reduceat(np.add.reduceat(counts.numpy(), starts, 0), starts, 1)
    names = tuple(task_text(number, labels, 7) for number, labels in enumerate(run.labels))
    return ConfusionData(_shares(together), names, tuple(range(len(starts))))


def class_confusion_plot(data: ConfusionData) -> Plot | None:
    """The heat map; None for a single class."""
    if len(data.names) < 2:
        return None
    worst = [f"{data.names[a]} as {data.names[b]} {share_text(share)}" for a, b, share in data.largest()]
    title = "No class is confused with another"
    for a, b, share in data.largest(1):
        title = f"The largest confusion: {share_text(share)} of {data.names[a]} is predicted as {data.names[b]}"
    return Plot(
        "class-confusion",
        title,
        "Heat map of the part of each true class's test samples (rows) that is predicted as each class (columns), "
        f"after the last task. The largest confusions: {', '.join(worst) or 'none'}.",
        lambda: _draw(data, "class"),
    )


def task_confusion_plot(data: ConfusionData) -> Plot | None:
    """The heat map; None for a single task."""
    if len(data.names) < 2:
        return None
    title = "Every sample is predicted as a class of its own task"
    for a, b, share in data.largest(1):
        kept, least = share_text(float(data.shares[a, a])), float(np.nanmin(np.diagonal(data.shares)))
        title = (
            f"{kept} of task {a + 1} is predicted as a class of that task, {share_text(share)} as one of task {b + 1}"
        )
        if least >= WELL_SEPARATED:
            title = f"At least {math.floor(10 * least) / 10:.1f} % of each task is predicted as a class of that task; "
            title += f"the largest confusion is {share_text(share)} of task {a + 1} with task {b + 1}"
    kept_all = tasks_text(np.diagonal(data.shares))
    return Plot(
        "task-confusion",
        title,
        "Heat map of the part of each task's test samples (rows) that is predicted as a class of each task (columns), "
        f"after the last task. Predicted as a class of their own task: {kept_all}.",
        lambda: _draw(data, "task"),
    )


def _draw(data: ConfusionData, what: str) -> "Figure":
    count = len(data.names)
    numbered = count <= MAX_NUMBERED
    names = [str(i + 1) for i in range(count)] if what == "task" and count > 6 else list(map(_short, data.names))
    longest = max(map(len, names))
    rotated = count * (longest + 2) > LETTERS or (count > 8 and longest > 3)
    figure = new_figure(
        min(max(1.2 + 0.4 * count, 2.2), 6.2 if numbered else 5.2) + (0.08 * longest if rotated else 0.0)
    )
    axes = figure.subplots()
    texts = cell_texts(data.shares, zeros=False) if numbered else None
    image = draw_cells(axes, data.shares, texts, square_root=not numbered)
    if count <= 8:
        axes.set_aspect("auto")
    if not numbered:
        draw_color_bar(axes, image, f"% of the samples of the true {what}")
    name_ticks(axes.xaxis, names, rotated=rotated)
    name_ticks(axes.yaxis, names)
    separated = what == "class" and 1 < len(data.starts) <= min(MAX_NUMBERED, count - 1)
    if separated:
        for start in data.starts[1:]:
            axes.axhline(start - 0.5, color=BRIGHT, lw=1.6 if numbered else 0.6)
            axes.axvline(start - 0.5, color=BRIGHT, lw=1.6 if numbered else 0.6)
    axes.set_ylabel(f"true {what}")
    unit = f" (% of the true {what}'s samples)" if numbered else ""
    predicted = "predicted class" if what == "class" else "task of the predicted class"
    axes.set_xlabel(predicted + unit + ("; lines separate tasks" if separated else ""))
    return figure


def _short(name: str) -> str:
    return name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…"


def _starts(labels: Sequence[Sequence[str]]) -> list[int]:
    return [0, *np.cumsum([len(task) for task in labels])[:-1].tolist()]


def _shares(counts: NDArray[np.int32]) -> NDArray[np.float64]:
    total = counts.sum(1, keepdims=True)
    return np.where(total > 0, 100.0 * counts / np.maximum(total, 1), np.nan)
