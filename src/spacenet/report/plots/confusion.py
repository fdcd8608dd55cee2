"""Which classes and tasks are confused with each other in the end."""

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from spacenet.report.evaluation_tables import confusion_table
from spacenet.report.plots import drawing
from spacenet.report.plots.drawing import Percentages
from spacenet.report.plots.plot import Figure, Plot, new_axes

MAX_NAMED = 5  # confusions that the text alternative names
WELL_SEPARATED = 95.0  # if in every task this percentage of the samples is assigned to the task, the title says that
LETTERS = 80  # letters that fit side by side under the cells
Labels = Sequence[Sequence[str]]  # the classes of each task, in the order of the counts


def shares_predicted(counts: Any, labels: Labels, by: Literal["class", "task"]) -> Percentages | None:
    """Which part of the samples of each class or task was predicted as each, in %; NaN without samples.

    `counts` are samples by true and predicted class; None for a single class or task, or if they are not known.
    """
    sizes = [len(each) for each in labels]
    if counts is None or len(counts) != sum(sizes) or len(sizes if by == "task" else counts) < 2:
        return None
    found, starts = np.asarray(counts), np.cumsum([0, *sizes])[:-1]
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


def class_confusion_plot(counts: Any, labels: Labels) -> Plot | None:
    """The heat map; None for a single class."""
    shares = shares_predicted(counts, labels, "class")
    if shares is None:
        return None
    names = [label for each in labels for label in each]
    worst = [(names[a], names[b], drawing.share_text(share)) for a, b, share in largest_confusions(shares, MAX_NAMED)]
    title = "No class is confused with another"
    for true, predicted, share in worst[:1]:
        title = f"The largest confusion: {share} of {true} is predicted as {predicted}"
    each = ", ".join(f"{true} as {predicted} {share}" for true, predicted, share in worst)
    text = (
        "Heat map of the part of each true class's test samples (rows) that is predicted as each class (columns), "
        f"after the last task. The largest confusions: {each or 'none'}."
    )
    starts = np.cumsum([len(own) for own in labels])[:-1].tolist()
    table = confusion_table(counts, names)
    return Plot("class-confusion", title, text, lambda: _draw_confusion(shares, names, "class", starts), table)


def task_confusion_plot(counts: Any, labels: Labels) -> Plot | None:
    """The heat map; None for a single task."""
    shares = shares_predicted(counts, labels, "task")
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
    names = drawing.task_names(labels, 7)
    return Plot("task-confusion", title, text, lambda: _draw_confusion(shares, names, "task"))


def _draw_confusion(shares: Percentages, names: Sequence[str], what: str, starts: Sequence[int] = ()) -> Figure:
    """`starts`: the first class of each task but the first; lines separate them."""
    count, numbered = len(names), len(names) <= drawing.MAX_NUMBERED
    names = [drawing.clip_name(name) for name in names]
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
