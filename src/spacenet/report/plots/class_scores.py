"""Precision and recall of each class."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from spacenet.model.scores import ClassScores
from spacenet.report.evaluation_tables import classes_table
from spacenet.report.plots import drawing
from spacenet.report.plots.plot import LINE, MUTED, PALETTE, Figure, Plot, new_axes

MARKERS = {"recall": ("o", PALETTE[0]), "precision": ("D", PALETTE[1])}
LETTERS = 90  # letters that fit side by side under the axis


def class_scores_plot(scores: Sequence[ClassScores]) -> Plot | None:
    """A point for the recall of each class and one for its precision; None for a single class."""
    if len(scores) < 2 or not any(each.samples for each in scores):
        return None
    lowest = []
    for name in MARKERS:
        found = [(value, each.label) for each in scores if (value := getattr(each, name)) is not None]
        if found:
            value, label = min(found, key=lambda pair: pair[0])
            lowest.append((name, label, drawing.share_text(value)))
    (first, label, share), *others = lowest
    title = f"The class with the lowest {first} is {label} ({share})"
    title += "".join(f", that with the lowest {name} is {label} ({share})" for name, label, share in others)
    each = drawing.abbreviate([f"{s.label}: {_percent(s.recall)} and {_percent(s.precision)}" for s in scores])
    text = f"Points of the recall and the precision of each class. Recall and precision of {each}."
    return Plot("class-scores", title, text, lambda: _draw(scores), classes_table(scores))


def _percent(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.1f} %"


def _draw(scores: Sequence[ClassScores]) -> Figure:
    names = [drawing.clip_name(each.label) for each in scores]
    count, longest = len(names), max(map(len, names))
    rotated = count * (longest + 2) > LETTERS
    figure, axes = new_axes(2.8 + (0.08 * longest if rotated else 0.0))
    places = np.arange(count)
    values = {name: np.array([getattr(each, name) for each in scores], float) for name in MARKERS}
    axes.vlines(places, values["recall"], values["precision"], color=LINE, linewidth=2, zorder=1)
    for name, (marker, color) in MARKERS.items():
        size = 26 if count <= 40 else 10
        axes.scatter(places, values[name], size, color=color, marker=marker, label=name, zorder=2)
    starts = [place for place, (one, other) in enumerate(pairwise(scores), 1) if one.task != other.task]
    separated = len(starts) < min(drawing.MAX_NUMBERED, count - 1)
    for start in starts if separated else ():
        axes.axvline(start - 0.5, color=MUTED, lw=0.6, ls=":")
    drawing.name_ticks(axes.xaxis, names, rotation=90 if rotated else 0)
    axes.grid(axis="y")
    axes.set(ylim=(-3, 103), xlim=(-0.6, count - 0.4), axisbelow=True, ylabel="%")
    axes.set_xlabel("class" + ("; dotted lines separate tasks" if starts and separated else ""))
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderpad=0)
    return figure
