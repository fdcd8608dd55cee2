"""Which classes and which tasks are confused after the last task."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spacenet.experiments.run import RunData
from spacenet.report.plots.drawing import BRIGHT, MAX_NUMBERED, cell_texts, draw_cells, draw_color_bar, name_ticks
from spacenet.report.plots.labels import share_text, task_text, tasks_text
from spacenet.report.plots.plot import Figure, Plot, new_axes

MAX_NAMED = 5  # confusions that the text alternative names
WELL_SEPARATED = 95.0  # if in every task this percentage of the samples is assigned to the task, the title says that
LETTERS = 80  # letters that fit side by side under the cells
MAX_NAME = 16  # letters of a name beside the cells


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
    names = tuple(task_text(number, labels, 7) for number, labels in enumerate(run.labels))
    return ConfusionData(_shares(together), names, tuple(range(len(names))))


def _shares(counts: NDArray[np.int32]) -> NDArray[np.float64]:
    total = counts.sum(1, keepdims=True)
    return np.where(total > 0, 100.0 * counts / np.maximum(total, 1), np.nan)


def class_confusion_plot(data: ConfusionData) -> Plot | None:
    """The heat map; None for a single class."""
    if len(data.names) < 2:
        return None
    worst = [f"{data.names[a]} as {data.names[b]} {share_text(share)}" for a, b, share in data.largest()]
    title = "No class is confused with another"
    for a, b, share in data.largest(1):
        title = f"The largest confusion: {share_text(share)} of {data.names[a]} is predicted as {data.names[b]}"
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
        own, other = share_text(float(kept[a])), share_text(share)
        title = f"{own} of task {a + 1} is predicted as a class of that task, {other} as one of task {b + 1}"
        if least >= WELL_SEPARATED:
            title = f"At least {math.floor(10 * least) / 10:.1f} % of each task is predicted as a class of that task; "
            title += f"the largest confusion is {other} of task {a + 1} with task {b + 1}"
    text = (
        "Heat map of the part of each task's test samples (rows) that is predicted as a class of each task (columns), "
        f"after the last task. Predicted as a class of their own task: {tasks_text(kept)}."
    )
    return Plot("task-confusion", title, text, lambda: _draw(data, "task"))


def _draw(data: ConfusionData, what: str) -> Figure:
    count, by_class = len(data.names), what == "class"
    numbered = count <= MAX_NUMBERED
    names = [name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…" for name in data.names]
    if not by_class and count > 6:
        names = [str(number + 1) for number in range(count)]
    longest = max(map(len, names))
    rotated = count * (longest + 2) > LETTERS or (count > 8 and longest > 3)
    height = min(max(1.2 + 0.4 * count, 2.2), 6.2 if numbered else 5.2)
    figure, axes = new_axes(height + (0.08 * longest if rotated else 0.0))
    texts = cell_texts(data.shares, zeros=False) if numbered else None
    image = draw_cells(axes, data.shares, texts, square=count > 8, square_root=not numbered)
    if not numbered:
        draw_color_bar(axes, image, f"% of the samples of the true {what}", shrink=0.7, pad=0.02)
    name_ticks(axes.xaxis, names, rotation=90 if rotated else 0)
    name_ticks(axes.yaxis, names)
    separated = by_class and 1 < len(data.starts) <= min(MAX_NUMBERED, count - 1)
    for start in data.starts[1:] if separated else ():
        for draw_line in (axes.axhline, axes.axvline):
            draw_line(start - 0.5, color=BRIGHT, lw=1.6 if numbered else 0.6)
    predicted = "predicted class" if by_class else "task of the predicted class"
    unit = f" (% of the true {what}'s samples)" if numbered else ""
    axes.set(ylabel=f"true {what}", xlabel=predicted + unit + ("; lines separate tasks" if separated else ""))
    return figure
