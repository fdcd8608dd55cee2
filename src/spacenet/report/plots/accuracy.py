"""All pictures of what a run knows in the end, and what it forgot."""

from spacenet.report.plots.confusion import (
    class_confusion_data,
    class_confusion_picture,
    task_confusion_data,
    task_confusion_picture,
)
from spacenet.report.plots.matrix import course_picture, matrix_data, matrix_picture
from spacenet.report.plots.plot import Plot
from spacenet.report.run_data import RunFacts


def accuracy_pictures(facts: RunFacts) -> list[Plot]:
    """Those that make sense for the run."""
    matrix, tasks, classes = matrix_data(facts), task_confusion_data(facts), class_confusion_data(facts)
    plots = [
        matrix_picture(matrix),
        course_picture(matrix),
        task_confusion_picture(tasks) if tasks else None,
        class_confusion_picture(classes) if classes else None,
    ]
    return [plot for plot in plots if plot is not None]
