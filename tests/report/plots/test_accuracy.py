"""Pictures of accuracy show the run's own figures, at any size."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest

from spacenet.experiments.run import Run, create_folder
from spacenet.report.plots.accuracy import accuracy_pictures
from spacenet.report.plots.confusion import (
    ConfusionData,
    class_confusion_data,
    class_confusion_picture,
    task_confusion_data,
    task_confusion_picture,
)
from spacenet.report.plots.matrix import course_picture, matrix_data, matrix_picture
from spacenet.report.run_data import RunFacts, load_run
from tests.experiments.support import config
from tests.report.plots.made_up import metrics, random_matrix, run_facts

MATRIX = [[99.0, 0.0, 0.0], [90.0, 80.0, 0.0], [70.0, 75.0, 95.0]]


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> RunFacts:
    folder = tmp_path_factory.mktemp("accuracy")
    create_folder(config(folder), folder / "run")
    Run(folder / "run").execute()
    return load_run(folder / "run")


def test_a_run_s_matrix_and_confusion_agree_with_its_metrics(facts: RunFacts) -> None:
    matrix, classes, tasks = matrix_data(facts), class_confusion_data(facts), task_confusion_data(facts)
    assert classes is not None
    assert tasks is not None
    np.testing.assert_array_equal(matrix.accuracy[-1], facts.metrics["matrix"][-1])
    assert matrix.means[-1] == pytest.approx(facts.metrics["acc"])
    right = np.diagonal(classes.shares)
    # The data have as many test samples of each class, so a task's accuracy is the mean of its classes'.
    assert [right[i : i + 2].mean() for i in (0, 2, 4)] == pytest.approx(facts.metrics["matrix"][-1])
    assert (np.diagonal(tasks.shares) >= matrix.accuracy[-1] - 1e-9).all()
    assert [plot.name for plot in accuracy_pictures(facts)] == [
        "accuracy-matrix",
        "accuracy-course",
        "task-confusion",
        "class-confusion",
    ]


def test_what_was_not_learned_yet_is_empty() -> None:
    data = matrix_data(run_facts(metrics(MATRIX)))
    assert np.isnan(data.accuracy).tolist() == [[False, True, True], [False, False, True], [False] * 3]
    assert data.means == pytest.approx((99, 85, 80))


def test_titles_say_what_was_forgotten() -> None:
    data = matrix_data(run_facts(metrics(MATRIX)))
    matrix, course = matrix_picture(data), course_picture(data)
    assert matrix is not None
    assert course is not None
    assert "80.0 % on average (ACC)" in matrix.title
    assert "lost 17.0 points" in matrix.title
    assert "from 99 % to 80 %" in course.title
    assert "task 1 loses most, from 99 % to 70 %" in course.title
    still = matrix_picture(matrix_data(run_facts(metrics([[99.0, 0.0], [99.0, 80.0]]))))
    assert still is not None
    assert "still known" in still.title


def test_a_run_that_stopped_early_shows_what_it_learned() -> None:
    data = matrix_data(run_facts(metrics(MATRIX[:2])))
    assert data.accuracy.shape == (2, 2)
    assert data.labels == (("0", "1"), ("2", "3"))


def test_confusions_are_shares_of_the_true_class() -> None:
    counts = [[8, 0, 2, 0], [0, 10, 0, 0], [0, 5, 0, 15], [0, 0, 0, 0]]
    facts = run_facts(metrics([row[:2] for row in MATRIX[:2]]), counts)
    classes, tasks = class_confusion_data(facts), task_confusion_data(facts)
    assert classes is not None
    assert tasks is not None
    np.testing.assert_allclose(classes.shares[:3], [[80, 0, 20, 0], [0, 100, 0, 0], [0, 25, 0, 75]])
    assert np.isnan(classes.shares[3]).all()  # there are no samples of it
    assert classes.starts == (0, 2)
    np.testing.assert_allclose(tasks.shares, [[90, 10], [25, 75]])
    class_picture, task_picture = class_confusion_picture(classes), task_confusion_picture(tasks)
    assert class_picture is not None
    assert task_picture is not None
    assert class_picture.title == "2 is taken for 3 most often: 75 % of its samples"
    assert task_picture.title == "Task 2 keeps 75 % of its samples; 25 % are given a class of task 1"


def test_where_tasks_are_well_apart_the_title_says_so() -> None:
    counts = [[996, 4, 0], [3, 979, 18], [11, 10, 979]]
    plot = task_confusion_picture(ConfusionData(np.array(counts) / 10, ("a", "b", "c"), (0, 1, 2)))
    assert plot is not None
    assert plot.title == (
        "Every task keeps 97.9 % of its samples or more; most that one loses to another: 2 %, task 2 to task 3"
    )


def test_nothing_confused_is_said() -> None:
    perfect = ConfusionData(100 * np.eye(3), ("a", "b", "c"), (0, 1, 2))
    plot = class_confusion_picture(perfect)
    assert plot is not None
    assert plot.title == "No class is taken for another"


def test_pictures_without_sense_are_left_out() -> None:
    assert [plot.name for plot in accuracy_pictures(run_facts(metrics([[90.0]]), [[9, 1], [1, 9]]))] == [
        "class-confusion"
    ]
    without = accuracy_pictures(run_facts(metrics(MATRIX)))
    assert [plot.name for plot in without] == ["accuracy-matrix", "accuracy-course"]


@pytest.mark.parametrize(("tasks", "classes", "numbered"), [(2, 1, True), (20, 1, True), (100, 2, False)])
def test_any_size_can_be_drawn(tasks: int, classes: int, numbered: bool) -> None:
    count = tasks * classes
    counts = (np.ones((count, count), int) + 400 * np.eye(count, dtype=int)).tolist()
    plots = accuracy_pictures(run_facts(metrics(random_matrix(tasks), classes), counts))
    assert len(plots) == 4
    for plot in plots:
        svg = plot.svg()
        texts = [text for text in ET.fromstring(svg).itertext() if text.strip()]
        assert len(svg) < 150_000
        if plot.name == "accuracy-matrix":
            assert (len(texts) > count * (count + 1) / 2) is numbered
