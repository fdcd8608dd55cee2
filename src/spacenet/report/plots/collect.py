"""Which plots a run or a comparison has."""

from spacenet.experiments.comparison import ComparisonData
from spacenet.experiments.run import RunData
from spacenet.report.plots.accuracy import history_plot, matrix_data, matrix_plot
from spacenet.report.plots.activations import activations_data, activations_plot
from spacenet.report.plots.by_task import by_task_data, by_task_plot
from spacenet.report.plots.capacity import capacity_data, capacity_plot
from spacenet.report.plots.class_memory import class_memory_data, class_memory_plot
from spacenet.report.plots.compaction import compaction_data, compaction_plot
from spacenet.report.plots.confusion import (
    class_confusion_data,
    class_confusion_plot,
    task_confusion_data,
    task_confusion_plot,
)
from spacenet.report.plots.connections import connections_data, connections_plot, rewiring_data, rewiring_plot
from spacenet.report.plots.inputs import inputs_data, inputs_plot
from spacenet.report.plots.plot import Plot
from spacenet.report.plots.ranking import acc_data, parameters_data, ranking_plot
from spacenet.report.plots.trade_off import memory_data, time_data, trade_off_plot


def run_plots(run: RunData, beside: RunData | None = None) -> list[Plot]:
    """All plots of a run. `beside` is another run to compare its inputs with, a static-sparse one say."""
    parts = accuracy_plots(run), confusion_plots(run), class_memory_plots(run), capacity_plots(run, beside)
    return [plot for part in parts for plot in part]


def accuracy_plots(run: RunData) -> list[Plot]:
    """How accurate the run was on each task, and what it forgot."""
    matrix = matrix_data(run)
    return _existing(matrix_plot(matrix), history_plot(matrix))


def confusion_plots(run: RunData) -> list[Plot]:
    """Which tasks and classes are confused in the end."""
    tasks, classes = task_confusion_data(run), class_confusion_data(run)
    return _existing(task_confusion_plot(tasks) if tasks else None, class_confusion_plot(classes) if classes else None)


def class_memory_plots(run: RunData) -> list[Plot]:
    """What the class statistics are worth, for methods that keep them."""
    memory = class_memory_data(run)
    return [class_memory_plot(memory)] if memory else []


def capacity_plots(run: RunData, beside: RunData | None = None) -> list[Plot]:
    """How the network is divided among the tasks, and how that came about."""
    capacity, links, rewiring = capacity_data(run), connections_data(run), rewiring_data(run)
    compaction, activations, inputs = compaction_data(run), activations_data(run), inputs_data(run, beside)
    return _existing(
        capacity_plot(capacity) if capacity else None,
        connections_plot(links) if links else None,
        rewiring_plot(rewiring) if rewiring else None,
        compaction_plot(compaction) if compaction else None,
        activations_plot(activations) if activations else None,
        inputs_plot(inputs) if inputs else None,
    )


def comparison_plots(data: ComparisonData) -> list[Plot]:
    """All plots of a comparison; none for a single method."""
    return _existing(
        ranking_plot(acc_data(data)),
        trade_off_plot(memory_data(data)),
        by_task_plot(by_task_data(data)),
        ranking_plot(parameters_data(data)),
        trade_off_plot(time_data(data)),
    )


def _existing(*plots: Plot | None) -> list[Plot]:
    return [plot for plot in plots if plot is not None]
