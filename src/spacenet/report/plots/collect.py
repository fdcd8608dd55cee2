"""Which plots a run or a comparison has."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from spacenet.experiments.comparison import ComparisonData
from spacenet.experiments.run import RunData
from spacenet.model.scores import Calibration, ClassScores, class_scores
from spacenet.report.plots.accuracy import history_plot, matrix_plot
from spacenet.report.plots.activations import activations_plot
from spacenet.report.plots.by_task import by_task_plot
from spacenet.report.plots.calibration import calibration_plot
from spacenet.report.plots.capacity import capacity_plot
from spacenet.report.plots.class_memory import class_memory_plot
from spacenet.report.plots.class_scores import class_scores_plot
from spacenet.report.plots.compaction import compaction_plot
from spacenet.report.plots.confusion import class_confusion_plot, task_confusion_plot
from spacenet.report.plots.connections import connections_plot, rewiring_plot
from spacenet.report.plots.curves import curves_plot
from spacenet.report.plots.inputs import inputs_plot
from spacenet.report.plots.methods import acc_plot, size_plot, trade_off_plot
from spacenet.report.plots.mistakes import mistakes_plot
from spacenet.report.plots.plot import Plot
from spacenet.utils.text import plural


def run_plots(run: RunData, beside: RunData | None = None) -> list[Plot]:
    """All plots of a run. `beside` is another run to compare its inputs with, a static-sparse one say."""
    runs = [run]
    of_predictions = [*class_plots(runs), *confusion_plots(runs), *mistakes_plots(runs)]
    return [*accuracy_plots(runs), *of_predictions, *class_memory_plots(runs), *capacity_plots(runs, beside)]


def accuracy_plots(runs: Sequence[RunData]) -> list[Plot]:
    """How accurate the runs were on each task, and what they forgot: the mean of all seeds."""
    alike = same_tasks(runs)
    matrix, history = matrix_plot(alike), history_plot(alike)
    if len(runs) == 1 or matrix is None or history is None:
        return _existing(matrix, history)
    mean = f"Mean over {_count(alike, runs)}"
    return [replace(matrix, caption=f"{mean}."), replace(history, caption=f"{mean}; shaded: ± standard deviation.")]


def class_plots(runs: Sequence[RunData]) -> list[Plot]:
    """Precision and recall of each class, and the calibration, over the test samples of all seeds."""
    alike = [run for run in same_tasks(runs) if run.analysis.calibration is not None]
    scores, calibration = final_class_scores(alike), final_calibration(alike)
    found = _existing(class_scores_plot(scores), calibration_plot(calibration))
    return _captioned(found, runs, f"The test samples of {_count(alike, runs)} together.")


def confusion_plots(runs: Sequence[RunData]) -> list[Plot]:
    """Which tasks and classes are confused in the end, over the test samples of all seeds."""
    alike = [run for run in same_tasks(runs) if run.analysis.confusion is not None]
    counts, labels = sum_confusions(alike), alike[0].labels if alike else []
    found = _existing(task_confusion_plot(counts, labels), class_confusion_plot(counts, labels))
    return _captioned(found, runs, f"The test samples of {_count(alike, runs)} together.")


def mistakes_plots(runs: Sequence[RunData]) -> list[Plot]:
    """Images that the first run's model predicts wrongly."""
    return _captioned(_existing(mistakes_plot(runs[0].analysis.mistakes)), runs, seed_caption(runs))


def class_memory_plots(runs: Sequence[RunData]) -> list[Plot]:
    """How the accuracy depends on what is kept of each class, in the first run."""
    return _captioned(_existing(class_memory_plot(runs[0])), runs, seed_caption(runs))


def capacity_plots(runs: Sequence[RunData], beside: RunData | None = None) -> list[Plot]:
    """How the network of the first run is divided among the tasks, and how that came about."""
    kinds = (capacity_plot, connections_plot, rewiring_plot, compaction_plot, activations_plot)
    plots = _existing(*(make(runs[0]) for make in kinds), inputs_plot(runs[0], beside))
    return _captioned(plots, runs, seed_caption(runs))


def same_tasks(runs: Sequence[RunData]) -> list[RunData]:
    """The runs that learned the most tasks, if these are the same ones."""
    most = max(runs, key=lambda run: len(run.labels))
    return [run for run in runs if run.labels == most.labels]


def sum_confusions(runs: Sequence[RunData]) -> NDArray[np.int64] | None:
    """Test samples by true and predicted class, over all runs; None without any."""
    counts = [run.analysis.confusion.numpy() for run in runs if run.analysis.confusion is not None]
    return np.sum(counts, axis=0, dtype=np.int64) if counts else None


def final_class_scores(runs: Sequence[RunData]) -> list[ClassScores]:
    """Precision and recall of each class over all runs; empty if they do not fit the tasks or were not recorded."""
    counts = sum_confusions(runs)
    if counts is None or len(counts) != sum(map(len, runs[0].labels)):
        return []
    return class_scores(counts, runs[0].labels)


def final_calibration(runs: Sequence[RunData]) -> Calibration | None:
    """The calibration over all runs; None if it was not recorded."""
    found = [run.analysis.calibration for run in runs if run.analysis.calibration is not None]
    return Calibration.merge(found) if found else None


def seed_caption(runs: Sequence[RunData]) -> str:
    """Which seed the plots of one run show."""
    return f"Seed {runs[0].seed} of {plural(len(runs), 'seed')}."


def _count(shown: Sequence[RunData], runs: Sequence[RunData]) -> str:
    return f"{len(shown)} of {len(runs)} seeds" if len(shown) < len(runs) else f"all {len(runs)} seeds"


def _captioned(plots: list[Plot], runs: Sequence[RunData], caption: str) -> list[Plot]:
    """The plots with this caption, where there are several seeds."""
    return [replace(plot, caption=caption) for plot in plots] if len(runs) > 1 else plots


def comparison_plots(data: ComparisonData) -> list[Plot]:
    """All plots of a comparison; none for a single method."""
    if len(data.rows) < 2:
        return []
    return _existing(
        acc_plot(data),
        curves_plot(data),
        trade_off_plot(data, "memory"),
        by_task_plot(data),
        size_plot(data),
        trade_off_plot(data, "time"),
    )


def _existing(*plots: Plot | None) -> list[Plot]:
    return [plot for plot in plots if plot is not None]
