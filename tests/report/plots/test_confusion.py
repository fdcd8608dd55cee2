"""Plots of confusions show shares of the true class or task."""

import numpy as np
import pytest

from spacenet.report.plots.confusion import class_confusion_plot, shares_predicted, task_confusion_plot


def test_confusions_are_shares_of_the_true_class() -> None:
    counts = [[8, 0, 2, 0], [0, 1234, 0, 0], [0, 5, 0, 15], [0, 0, 0, 0]]
    found, labels = np.array(counts), [["0", "1"], ["2", "3"]]
    classes, tasks = shares_predicted(found, labels, "class"), shares_predicted(found, labels, "task")
    assert classes is not None
    assert tasks is not None
    np.testing.assert_allclose(classes[:3], [[80, 0, 20, 0], [0, 100, 0, 0], [0, 25, 0, 75]])
    assert np.isnan(classes[3]).all()  # there are no samples of it
    assert tasks.ravel().tolist() == pytest.approx([100 * 1242 / 1244, 100 * 2 / 1244, 25, 75])
    class_plot, task_plot = class_confusion_plot(found, labels), task_confusion_plot(found, labels)
    assert class_plot is not None
    assert task_plot is not None
    assert class_plot.table is not None
    assert class_plot.table.rows[1] == ["1", "0", "1,234", "0", "0"]
    assert class_confusion_plot(None, labels) is None
    assert class_plot.title == "The largest confusion: 75 % of 2 is predicted as 3"
    assert task_plot.title == "75 % of task 2 is predicted as a class of that task, 25 % as one of task 1"


def test_where_tasks_are_well_separated_the_title_says_so() -> None:
    counts = [[996, 4, 0], [3, 979, 18], [11, 10, 979]]
    plot = task_confusion_plot(np.array(counts), [["0"], ["1"], ["2"]])
    assert plot is not None
    assert plot.title == (
        "At least 97.9 % of each task is predicted as a class of that task; "
        "the largest confusion is 2 % of task 2 with task 3"
    )


def test_nothing_confused_is_said() -> None:
    plot = class_confusion_plot(100 * np.eye(3, dtype=int), [["0"], ["1"], ["2"]])
    assert plot is not None
    assert plot.title == "No class is confused with another"
