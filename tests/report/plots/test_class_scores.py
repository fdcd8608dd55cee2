"""Plots of precision and recall, calibration and mistakes."""

import numpy as np
import pytest

from spacenet.model.scores import Calibration, Mistakes, class_scores
from spacenet.report.plots.calibration import calibration_plot
from spacenet.report.plots.class_scores import class_scores_plot
from spacenet.report.plots.mistakes import mistakes_plot
from tests.report.made_up import made_up_mistakes, words_in


def test_the_lowest_precision_and_recall_are_in_the_title() -> None:
    plot = class_scores_plot(class_scores(np.array([[9, 1, 0], [6, 4, 0], [0, 0, 10]]), [["a", "b"], ["c"]]))
    assert plot is not None
    assert plot.title == "The class with the lowest recall is b (40 %), that with the lowest precision is a (60 %)"
    assert plot.table is not None
    assert plot.table.rows[0] == ["a", "1", "60.0", "90.0", "72.0", "10"]
    assert "dotted lines separate tasks" in words_in(plot)


def test_one_class_has_no_plot() -> None:
    assert class_scores_plot(class_scores(np.array([[9]]), [["a"]])) is None
    assert class_scores_plot([]) is None


@pytest.mark.parametrize("count", [2, 30, 150])
def test_any_number_of_classes_can_be_drawn(count: int) -> None:
    names = [f"a class with a long name {number}" for number in range(count)]
    plot = class_scores_plot(class_scores(np.eye(count, dtype=np.int64) * 5 + 1, [names]))
    assert plot is not None
    assert len(plot.svg()) < 200_000


@pytest.mark.parametrize(
    ("confidence", "right", "words"),
    [
        ([0.9] * 10, 5, "The model is overconfident: mean confidence 90.0 %, accuracy 50.0 % (ECE 40.0)"),
        ([0.5] * 10, 9, "The model is underconfident"),
        ([0.9] * 10, 9, "The model is as sure as it is right"),
        ([0.95] * 5 + [0.05] * 5, 5, "well calibrated on average only"),
    ],
)
def test_the_title_says_how_sure_the_model_is(confidence: list[float], right: int, words: str) -> None:
    answers = np.arange(10) < right if len(set(confidence)) == 1 else np.arange(10) >= right
    plot = calibration_plot(Calibration.of(np.array(confidence), answers))
    assert plot is not None
    assert words in plot.title
    assert "confidence in %" in words_in(plot)


def test_nothing_recorded_has_no_plot() -> None:
    assert calibration_plot(None) is None
    assert calibration_plot(Calibration.of(np.zeros(0), np.zeros(0, bool))) is None
    assert mistakes_plot(Mistakes()) is None
    assert mistakes_plot(made_up_mistakes((5,))) is None


@pytest.mark.parametrize("shape", [(8, 8), (3, 16, 12)])
def test_a_gallery_names_both_classes(shape: tuple[int, ...]) -> None:
    plot = mistakes_plot(made_up_mistakes(shape))
    assert plot is not None
    assert plot.title == "The most confident mistake: 0 is predicted as 1 (99.0 %)"
    assert plot.svg().count("<image") == 12
    assert "→ 5" in words_in(plot)
