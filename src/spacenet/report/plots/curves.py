"""The accuracy of each method while the tasks are learned: the mean over the seeds, with their standard deviation."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spacenet.experiments.comparison import ComparisonData
from spacenet.experiments.metrics import accuracies_so_far
from spacenet.experiments.run import count_test_samples
from spacenet.report.plots import drawing
from spacenet.report.plots.drawing import Percentages
from spacenet.report.plots.plot import Figure, Plot, new_axes, task_colors
from spacenet.report.table import Table
from spacenet.utils.text import format_mean_std

BAND = 0.18  # opacity of the standard deviation's band
HEIGHT, LINE_GAP = 3.9, 5.0  # of the figure in inches, and of labels in %


@dataclass(frozen=True)
class Curve:
    """Accuracy over all test samples of the tasks learned so far, after each; NaN where not all were tested."""

    method: str
    mean: Percentages  # (task,), over the seeds
    std: Percentages  # (task,), over the seeds; NaN for a single seed


def accuracy_curves(comparison: ComparisonData) -> list[Curve]:
    """A curve for each method, the one that ends highest first."""
    curves = []
    for name, runs in comparison.runs.items():
        values = np.array(
            [accuracies_so_far(run.metrics["matrix"], count_test_samples(run.metrics)) for run in runs], float
        )
        curves.append(Curve(name, values.mean(0), std_over_seeds(values)))
    return sorted(curves, key=lambda curve: -float(curve.mean[-1]))


def std_over_seeds(values: Percentages) -> Percentages:
    """The standard deviation over the first axis; NaN for a single seed."""
    return np.asarray(values.std(0, ddof=1)) if len(values) > 1 else np.full(values.shape[1:], np.nan)


def curves_plot(comparison: ComparisonData) -> Plot | None:
    """A line for each method, with a band where it ran with several seeds; None for a single task."""
    curves = accuracy_curves(comparison)
    if not curves or len(curves[0].mean) < 2:
        return None
    aia = {row.method: row.aia for row in comparison.rows if row.aia is not None}
    best = max(aia, key=lambda name: aia[name].mean, default=curves[0].method)
    title = f"While the tasks are learned, {best} has the highest accuracy over the classes seen so far"
    title += f" (AIA {aia[best].mean:.1f} %)" if best in aia else ""
    band = any(not np.isnan(curve.std).all() for curve in curves)
    each = "; ".join(f"{curve.method}: {drawing.tasks_text(curve.mean, 6)}" for curve in curves)
    text = (
        "Lines of each method's accuracy over the test samples of all classes seen so far, after each task"
        f"{', with bands of one standard deviation over the seeds' if band else ''}. {each}."
    )
    return Plot("accuracy-over-tasks", title, text, lambda: _draw(curves, band), _table(curves))


def _table(curves: Sequence[Curve]) -> Table:
    rows = [
        [curve.method, *(_cell(mean, std) for mean, std in zip(curve.mean, curve.std, strict=True))] for curve in curves
    ]
    numbers = [str(number) for number in range(1, len(curves[0].mean) + 1)]
    return Table("Accuracy in % over the classes seen so far, after each task", ["method", *numbers], rows)


def _cell(mean: float, std: float) -> str:
    return "" if np.isnan(mean) else format_mean_std(mean, None if np.isnan(std) else std)


def _draw(curves: Sequence[Curve], band: bool) -> Figure:
    count, many = len(curves[0].mean), len(curves) > 8
    figure, axes = new_axes(HEIGHT + (0.16 * (len(curves) - 14) if len(curves) > 14 else 0.0))
    for curve, color in zip(curves, task_colors(len(curves)), strict=True):
        known = np.flatnonzero(~np.isnan(curve.mean))
        main = curve.method == "spacenet"
        marker = "o" if count <= 25 else None
        axes.plot(known + 1, curve.mean[known], color=color, lw=2.6 if main else 1.4, marker=marker, ms=3, zorder=3)
        if not np.isnan(curve.std).all():
            low, high = curve.mean[known] - curve.std[known], curve.mean[known] + curve.std[known]
            axes.fill_between(known + 1, low.clip(0), high.clip(max=100), color=color, alpha=BAND, lw=0)
    note = "; bands: standard deviation over seeds" if band else ""
    axes.set(ylim=(0, 103), xlim=(1 - 0.02 * count, 1.005 * count), xticks=range(1, count + 1, -(-count // 20)))
    axes.grid(axis="y")
    axes.set(axisbelow=True, xlabel=f"tasks learned{note}", ylabel="accuracy in % over the classes seen so far")
    _label_ends(axes, curves, LINE_GAP * (0.8 if many else 1.0))
    return figure


def _label_ends(axes: Any, curves: Sequence[Curve], gap: float) -> None:
    """The method's name and last accuracy to the right of its line."""
    count, ends = len(curves[0].mean), [float(curve.mean[-1]) for curve in curves]
    places, shares = drawing.spread_labels(ends, gap, 0, 103), drawing.share_texts(ends)
    for curve, color, end, place, share in zip(curves, task_colors(len(curves)), ends, places, shares, strict=True):
        arrow = {"arrowstyle": "-", "color": color, "lw": 0.8, "shrinkA": 0, "shrinkB": 2, "relpos": (0, 0.5)}
        style: dict[str, Any] = {"va": "center", "weight": "bold" if curve.method == "spacenet" else "normal"}
        style |= {"arrowprops": arrow, "annotation_clip": False}
        axes.annotate(f"{curve.method}: {share}", (count, end), (1.03 * count, place), **style)
