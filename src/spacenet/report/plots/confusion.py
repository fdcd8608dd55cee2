"""What is taken for what in the end: classes, and tasks."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spacenet.report.plots.areas import BRIGHT
from spacenet.report.plots.cells import MOST_NUMBERS, draw_cells, draw_scale, name_ticks, numbers
from spacenet.report.plots.labels import share_text, task_text, tasks_text
from spacenet.report.plots.plot import Plot, new_figure
from spacenet.report.run_data import RunFacts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_NAMED = 5
"""Confusions that the text alternative names."""
WELL_APART = 95.0
"""Where every task keeps so many % of its samples, that is what to see."""
LETTERS = 80
"""How many fit side by side under the cells."""
LONGEST = 16
"""Letters of a name beside the cells."""


@dataclass(frozen=True)
class ConfusionData:
    """Which part of the test samples of each row's class or task was given each column's."""

    shares: NDArray[np.float64]
    """(true, answered) in %; not a number where there are no test samples."""
    names: tuple[str, ...]
    starts: tuple[int, ...]
    """The first class of each task."""

    def largest(self, count: int = MOST_NAMED) -> list[tuple[int, int, float]]:
        """The largest confusions: true, answered, percent."""
        wrong = np.nan_to_num(self.shares)
        np.fill_diagonal(wrong, 0.0)
        order = np.argsort(-wrong, axis=None, kind="stable")[:count]
        places = [(int(place) // len(wrong), int(place) % len(wrong)) for place in order]
        return [(row, column, float(wrong[row, column])) for row, column in places if wrong[row, column] > 0]


def class_confusion_data(facts: RunFacts) -> ConfusionData | None:
    """Which class is taken for which; None if the run did not keep it."""
    counts, names = facts.analysis.confusion, [label for labels in facts.labels for label in labels]
    if counts is None or len(counts) != len(names):
        return None
    return ConfusionData(_shares(counts.numpy()), tuple(names), tuple(_starts(facts.labels)))


def task_confusion_data(facts: RunFacts) -> ConfusionData | None:
    """How often a sample of one task is given a class of another; None if the run did not keep it."""
    counts, starts = facts.analysis.confusion, _starts(facts.labels)
    if counts is None or len(counts) != sum(map(len, facts.labels)):
        return None
    together = np.add.reduceat(np.add.reduceat(counts.numpy(), starts, 0), starts, 1)
    names = tuple(task_text(number, labels, 7) for number, labels in enumerate(facts.labels))
    return ConfusionData(_shares(together), names, tuple(range(len(starts))))


def class_confusion_picture(data: ConfusionData) -> Plot | None:
    """The heat map; nothing to see with a single class."""
    if len(data.names) < 2:
        return None
    worst = [f"{data.names[a]} for {data.names[b]} {share_text(share)}" for a, b, share in data.largest()]
    title = "No class is taken for another"
    for a, b, share in data.largest(1):
        title = f"{data.names[a]} is taken for {data.names[b]} most often: {share_text(share)} of its samples"
    return Plot(
        "class-confusion",
        title,
        "Heat map: for each true class (row) the part of its test samples that is given each class (column), in the "
        f"end. Taken for another most often: {', '.join(worst) or 'none'}.",
        lambda: _draw(data, "class"),
    )


def task_confusion_picture(data: ConfusionData) -> Plot | None:
    """The heat map; nothing to see with a single task."""
    if len(data.names) < 2:
        return None
    title = "Every sample is given a class of its own task"
    for a, b, share in data.largest(1):
        kept, least = share_text(float(data.shares[a, a])), float(np.nanmin(np.diagonal(data.shares)))
        title = f"Task {a + 1} keeps {kept} of its samples; {share_text(share)} are given a class of task {b + 1}"
        if least >= WELL_APART:
            most = f"most that one loses to another: {share_text(share)}, task {a + 1} to task {b + 1}"
            title = f"Every task keeps {math.floor(10 * least) / 10:.1f} % of its samples or more; {most}"
    kept_all = tasks_text(np.diagonal(data.shares))
    return Plot(
        "task-confusion",
        title,
        "Heat map: for each true task (row) the part of its test samples that is given a class of each task (column), "
        f"in the end. Given a class of their own task: {kept_all}.",
        lambda: _draw(data, "task"),
    )


def _draw(data: ConfusionData, what: str) -> "Figure":
    count = len(data.names)
    numbered = count <= MOST_NUMBERS
    names = [str(i + 1) for i in range(count)] if what == "task" and count > 6 else list(map(_short, data.names))
    longest = max(map(len, names))
    turned = count * (longest + 2) > LETTERS or (count > 8 and longest > 3)
    figure = new_figure(
        min(max(1.2 + 0.4 * count, 2.2), 6.2 if numbered else 5.2) + (0.08 * longest if turned else 0.0)
    )
    axes = figure.subplots()
    texts = numbers(data.shares, zeros=False) if numbered else None
    image = draw_cells(axes, data.shares, texts, small_matters=not numbered)
    if count <= 8:
        axes.set_aspect("auto")
    if not numbered:
        draw_scale(axes, image, f"% of the samples of the true {what}")
    name_ticks(axes.xaxis, names, turned=turned)
    name_ticks(axes.yaxis, names)
    parted = what == "class" and 1 < len(data.starts) <= min(MOST_NUMBERS, count - 1)
    if parted:
        for start in data.starts[1:]:
            axes.axhline(start - 0.5, color=BRIGHT, lw=1.6 if numbered else 0.6)
            axes.axvline(start - 0.5, color=BRIGHT, lw=1.6 if numbered else 0.6)
    axes.set_ylabel(f"true {what}")
    unit = f" (% of the true {what}'s samples)" if numbered else ""
    answered = "class answered" if what == "class" else "task of the class answered"
    axes.set_xlabel(answered + unit + ("; lines part tasks" if parted else ""))
    return figure


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"


def _starts(labels: Sequence[Sequence[str]]) -> list[int]:
    return [0, *np.cumsum([len(task) for task in labels])[:-1].tolist()]


def _shares(counts: NDArray[np.int32]) -> NDArray[np.float64]:
    total = counts.sum(1, keepdims=True)
    return np.where(total > 0, 100.0 * counts / np.maximum(total, 1), np.nan)
