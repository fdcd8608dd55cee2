"""Which plots a run or a comparison has."""

from spacenet.experiments.comparison import ComparisonData
from spacenet.experiments.run import RunData
from spacenet.report.plots import (
    accuracy,
    activations,
    by_task,
    capacity,
    class_memory,
    compaction,
    connections,
    inputs,
    methods,
)
from spacenet.report.plots.plot import Plot


def run_plots(run: RunData, beside: RunData | None = None) -> list[Plot]:
    """All plots of a run. `beside` is another run to compare its inputs with, a static-sparse one say."""
    return [*accuracy_plots(run), *confusion_plots(run), *class_memory_plots(run), *capacity_plots(run, beside)]


def accuracy_plots(run: RunData) -> list[Plot]:
    """How accurate the run was on each task, and what it forgot."""
    matrix = accuracy.matrix_data(run)
    return _existing(accuracy.matrix_plot(matrix), accuracy.history_plot(matrix))


def confusion_plots(run: RunData) -> list[Plot]:
    """Which tasks and classes are confused in the end."""
    return _existing(
        accuracy.task_confusion_plot(tasks) if (tasks := accuracy.task_confusion_data(run)) else None,
        accuracy.class_confusion_plot(classes) if (classes := accuracy.class_confusion_data(run)) else None,
    )


def class_memory_plots(run: RunData) -> list[Plot]:
    """What the class statistics are worth, for methods that keep them."""
    data = class_memory.class_memory_data(run)
    return [class_memory.class_memory_plot(data)] if data else []


def capacity_plots(run: RunData, beside: RunData | None = None) -> list[Plot]:
    """How the network is divided among the tasks, and how that came about."""
    return _existing(
        capacity.capacity_plot(areas) if (areas := capacity.capacity_data(run)) else None,
        connections.connections_plot(links) if (links := connections.connections_data(run)) else None,
        connections.rewiring_plot(moved) if (moved := connections.rewiring_data(run)) else None,
        compaction.compaction_plot(blocks) if (blocks := compaction.compaction_data(run)) else None,
        activations.activations_plot(active) if (active := activations.activations_data(run)) else None,
        inputs.inputs_plot(pixels) if (pixels := inputs.inputs_data(run, beside)) else None,
    )


def comparison_plots(data: ComparisonData) -> list[Plot]:
    """All plots of a comparison; none for a single method."""
    return _existing(
        methods.ranking_plot(methods.acc_data(data)),
        methods.trade_off_plot(methods.memory_data(data)),
        by_task.by_task_plot(by_task.by_task_data(data)),
        methods.ranking_plot(methods.parameters_data(data)),
        methods.trade_off_plot(methods.time_data(data)),
    )


def _existing(*plots: Plot | None) -> list[Plot]:
    return [plot for plot in plots if plot is not None]
