"""Plots of accuracy show the run's own numbers, at any size."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest

from spacenet.experiments.run import RunData
from spacenet.report.plots.accuracy import (
    class_confusion_plot,
    history_plot,
    learned_matrix,
    matrix_plot,
    mean_history,
    shares_predicted,
    task_confusion_plot,
)
from spacenet.report.plots.collect import accuracy_plots, confusion_plots
from tests.report.made_up import MATRIX, metrics, random_matrix, run_data


def test_matrix_and_confusion_of_a_learned_run_agree_with_its_metrics(learned_run: RunData) -> None:
    matrix, run = learned_matrix(learned_run), learned_run
    classes, tasks = shares_predicted(run, "class"), shares_predicted(run, "task")
    assert classes is not None
    assert tasks is not None
    np.testing.assert_array_equal(matrix[-1], learned_run.metrics["matrix"][-1])
    assert mean_history(matrix)[-1] == pytest.approx(learned_run.metrics["acc"])
    right = np.diagonal(classes)
    # Every class has as many test samples, so a task's accuracy is the mean of its classes'.
    assert [right[i : i + 2].mean() for i in (0, 2, 4)] == pytest.approx(learned_run.metrics["matrix"][-1])
    assert (np.diagonal(tasks) >= matrix[-1] - 1e-9).all()


def test_what_was_not_learned_yet_is_empty() -> None:
    matrix = learned_matrix(run_data(metrics(MATRIX)))
    assert np.isnan(matrix).tolist() == [[False, True, True], [False, False, True], [False] * 3]
    assert mean_history(matrix) == pytest.approx([99, 85, 80])


def test_titles_say_what_was_forgotten() -> None:
    run = run_data(metrics(MATRIX))
    matrix, history = matrix_plot(run), history_plot(run)
    assert matrix is not None
    assert history is not None
    assert "the mean accuracy is 80.0 % (ACC)" in matrix.title
    assert "earlier tasks lost 17.0 points on average (BWT)" in matrix.title
    assert "from 99 % to 80 %" in history.title
    assert "task 1 loses most, from 99 % to 70 %" in history.title
    still = matrix_plot(run_data(metrics([[99.0, 0.0], [99.0, 80.0]])))
    assert still is not None
    assert "earlier tasks kept their accuracy" in still.title


def test_a_run_that_stopped_early_shows_what_it_learned() -> None:
    run = run_data(metrics(MATRIX[:2]))
    assert learned_matrix(run).shape == (2, 2)
    assert run.labels == [["0", "1"], ["2", "3"]]


def test_confusions_are_shares_of_the_true_class() -> None:
    counts = [[8, 0, 2, 0], [0, 1234, 0, 0], [0, 5, 0, 15], [0, 0, 0, 0]]
    run = run_data(metrics([row[:2] for row in MATRIX[:2]]), counts)
    classes, tasks = shares_predicted(run, "class"), shares_predicted(run, "task")
    assert classes is not None
    assert tasks is not None
    np.testing.assert_allclose(classes[:3], [[80, 0, 20, 0], [0, 100, 0, 0], [0, 25, 0, 75]])
    assert np.isnan(classes[3]).all()  # there are no samples of it
    assert tasks.ravel().tolist() == pytest.approx([100 * 1242 / 1244, 100 * 2 / 1244, 25, 75])
    class_plot, task_plot = class_confusion_plot(run), task_confusion_plot(run)
    assert class_plot is not None
    assert task_plot is not None
    assert class_plot.table is not None
    assert class_plot.table.rows[1] == ["1", "0", "1,234", "0", "0"]
    assert class_confusion_plot(run_data(run.metrics)) is None
    assert class_plot.title == "The largest confusion: 75 % of 2 is predicted as 3"
    assert task_plot.title == "75 % of task 2 is predicted as a class of that task, 25 % as one of task 1"


def test_where_tasks_are_well_separated_the_title_says_so() -> None:
    counts = [[996, 4, 0], [3, 979, 18], [11, 10, 979]]
    plot = task_confusion_plot(run_data(metrics(MATRIX, classes=1), counts))
    assert plot is not None
    assert plot.title == (
        "At least 97.9 % of each task is predicted as a class of that task; "
        "the largest confusion is 2 % of task 2 with task 3"
    )


def test_nothing_confused_is_said() -> None:
    plot = class_confusion_plot(run_data(metrics(MATRIX, classes=1), (100 * np.eye(3, dtype=int)).tolist()))
    assert plot is not None
    assert plot.title == "No class is confused with another"


@pytest.mark.parametrize(("tasks", "classes", "numbered"), [(2, 1, True), (20, 1, True), (100, 2, False)])
def test_any_size_can_be_drawn(tasks: int, classes: int, numbered: bool) -> None:
    count = tasks * classes
    counts = (np.ones((count, count), int) + 400 * np.eye(count, dtype=int)).tolist()
    run = run_data(metrics(random_matrix(tasks), classes), counts)
    plots = accuracy_plots(run) + confusion_plots(run)
    assert len(plots) == 4
    for plot in plots:
        svg = plot.svg()
        texts = [text for text in ET.fromstring(svg).itertext() if text.strip()]
        assert len(svg) < 150_000
        if plot.name == "accuracy-matrix":
            assert (len(texts) > count * (count + 1) / 2) is numbered
