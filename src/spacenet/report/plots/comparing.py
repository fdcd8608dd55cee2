"""All pictures of a comparison."""

from spacenet.report.comparison_data import ComparisonFacts
from spacenet.report.plots.by_task import by_task_data, by_task_picture
from spacenet.report.plots.plot import Plot
from spacenet.report.plots.ranking import acc_data, parameters_data, ranking_picture
from spacenet.report.plots.trade_off import memory_data, time_data, trade_off_picture


def comparison_pictures(facts: ComparisonFacts) -> list[Plot]:
    """Those that make sense for the comparison."""
    plots = [
        ranking_picture(acc_data(facts)),
        trade_off_picture(memory_data(facts)),
        by_task_picture(by_task_data(facts)),
        ranking_picture(parameters_data(facts)),
        trade_off_picture(time_data(facts)),
    ]
    return [plot for plot in plots if plot is not None]
