"""All pictures of a comparison."""

from spacenet.report.comparison_data import ComparisonFacts
from spacenet.report.plots.by_task import by_task_data, by_task_picture
from spacenet.report.plots.plot import Picture
from spacenet.report.plots.ranking import acc_data, parameters_data, ranking_picture
from spacenet.report.plots.trade_off import memory_data, time_data, trade_off_picture


def comparison_pictures(facts: ComparisonFacts) -> list[Picture]:
    """Those that make sense for the comparison."""
    pictures = [
        ranking_picture(acc_data(facts)),
        trade_off_picture(memory_data(facts)),
        by_task_picture(by_task_data(facts)),
        ranking_picture(parameters_data(facts)),
        trade_off_picture(time_data(facts)),
    ]
    return [picture for picture in pictures if picture is not None]
