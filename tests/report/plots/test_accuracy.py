"""Plots of accuracy show the run's own numbers, at any size."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest

from spacenet.experiments.run import RunData
from spacenet.report.plots.accuracy import history_plot, learned_matrix, matrix_plot, mean_history
from spacenet.report.plots.collect import accuracy_plots, confusion_plots
from spacenet.report.plots.confusion import shares_predicted
from tests.report.made_up import MATRIX, metrics, random_matrix, run_data


def test_matrix_and_confusion_of_a_learned_run_agree_with_its_metrics(learned_run: RunData) -> None:
    matrix, run = learned_matrix(learned_run), learned_run
    classes, tasks = (shares_predicted(run.analysis.confusion, run.labels, by) for by in ("class", "task"))
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
    matrix, history = matrix_plot([run]), history_plot([run])
    assert matrix is not None
    assert history is not None
    assert "the mean accuracy is 80.0 % (ACC)" in matrix.title
    assert "earlier tasks lost 17.0 points on average (BWT)" in matrix.title
    assert "from 99 % to 80 %" in history.title
    assert "task 1 loses most, from 99 % to 70 %" in history.title
    still = matrix_plot([run_data(metrics([[99.0, 0.0], [99.0, 80.0]]))])
    assert still is not None
    assert "earlier tasks kept their accuracy" in still.title


def test_several_seeds_are_shown_by_their_mean() -> None:
    runs = [run_data(metrics([[90.0, 0.0], [last, 80.0]], seed=seed)) for seed, last in enumerate((60.0, 80.0))]
    matrix, history = accuracy_plots(runs)
    assert "the mean accuracy is 75.0 % (ACC); earlier tasks lost 20.0 points" in matrix.title
    assert matrix.table is not None
    assert matrix.table.rows[1] == ["2", "70.0 ± 14.1", "80.0 ± 0.0"]
    assert matrix.caption == "Mean over all 2 seeds."
    assert history.caption == "Mean over all 2 seeds; shaded: ± standard deviation."
    assert "task 1 loses most, from 90 % to 70 %" in history.title
    single = history_plot(runs[:1])
    assert single is not None
    assert ("opacity: 0.12" in history.svg(), "opacity: 0.12" in single.svg()) == (True, False)


def test_of_seeds_that_learned_fewer_tasks_the_mean_says_nothing() -> None:
    runs = [run_data(metrics(MATRIX[:2])), run_data(metrics(MATRIX, seed=1))]
    matrix, _ = accuracy_plots(runs)
    assert matrix.caption == "Mean over 1 of 2 seeds."
    assert "After 3 tasks" in matrix.title


def test_a_run_that_stopped_early_shows_what_it_learned() -> None:
    run = run_data(metrics(MATRIX[:2]))
    assert learned_matrix(run).shape == (2, 2)
    assert run.labels == [["0", "1"], ["2", "3"]]


@pytest.mark.parametrize(("tasks", "classes", "numbered"), [(2, 1, True), (20, 1, True), (100, 2, False)])
def test_any_size_can_be_drawn(tasks: int, classes: int, numbered: bool) -> None:
    count = tasks * classes
    counts = (np.ones((count, count), int) + 400 * np.eye(count, dtype=int)).tolist()
    run = run_data(metrics(random_matrix(tasks), classes), counts)
    plots = accuracy_plots([run]) + confusion_plots([run])
    assert len(plots) == 4
    for plot in plots:
        svg = plot.svg()
        texts = [text for text in ET.fromstring(svg).itertext() if text.strip()]
        assert len(svg) < 150_000
        if plot.name == "accuracy-matrix":
            assert (len(texts) > count * (count + 1) / 2) is numbered
