"""Which plots a run or a comparison has."""

from spacenet.experiments.comparison import ComparisonData
from spacenet.experiments.run import RunData
from spacenet.report.plots.accuracy import class_confusion_plot, history_plot, matrix_plot, task_confusion_plot
from spacenet.report.plots.activations import activations_plot
from spacenet.report.plots.by_task import by_task_plot
from spacenet.report.plots.capacity import capacity_plot
from spacenet.report.plots.class_memory import class_memory_plot
from spacenet.report.plots.compaction import compaction_plot
from spacenet.report.plots.connections import connections_plot, rewiring_plot
from spacenet.report.plots.curves import curves_plot
from spacenet.report.plots.inputs import inputs_plot
from spacenet.report.plots.methods import acc_plot, parameters_plot, trade_off_plot
from spacenet.report.plots.plot import Plot


def run_plots(run: RunData, beside: RunData | None = None) -> list[Plot]:
    """All plots of a run. `beside` is another run to compare its inputs with, a static-sparse one say."""
    class_memory = _existing(class_memory_plot(run))
    return [*accuracy_plots(run), *confusion_plots(run), *class_memory, *capacity_plots(run, beside)]


def accuracy_plots(run: RunData) -> list[Plot]:
    """How accurate the run was on each task, and what it forgot."""
    return _existing(matrix_plot(run), history_plot(run))


def confusion_plots(run: RunData) -> list[Plot]:
    """Which tasks and classes are confused in the end."""
    return _existing(task_confusion_plot(run), class_confusion_plot(run))


def capacity_plots(run: RunData, beside: RunData | None = None) -> list[Plot]:
    """How the network is divided among the tasks, and how that came about."""
    made = (make(run) for make in (capacity_plot, connections_plot, rewiring_plot, compaction_plot, activations_plot))
    return _existing(*made, inputs_plot(run, beside))


def comparison_plots(data: ComparisonData) -> list[Plot]:
    """All plots of a comparison; none for a single method."""
    if len(data.rows) < 2:
        return []
    return _existing(
        acc_plot(data),
        curves_plot(data),
        trade_off_plot(data, "memory"),
        by_task_plot(data),
        parameters_plot(data),
        trade_off_plot(data, "time"),
    )


def _existing(*plots: Plot | None) -> list[Plot]:
    return [plot for plot in plots if plot is not None]
