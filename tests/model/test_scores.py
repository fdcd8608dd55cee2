"""Scores that follow from counts, against scikit-learn's where it has them."""

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

from spacenet.model.scores import (
    BINS,
    MAX_MISTAKES,
    Calibration,
    Mistake,
    Mistakes,
    OldNew,
    class_scores,
    confident_mistakes,
    displayable,
    old_against_new,
)

RNG = np.random.default_rng(0)
TRUTH = RNG.integers(0, 5, 400)
PREDICTED = np.where(RNG.random(400) < 0.7, TRUTH, RNG.integers(0, 5, 400))
CONFUSION = np.asarray(confusion_matrix(TRUTH, PREDICTED), np.int64)


def test_precision_and_recall_are_those_of_scikit_learn() -> None:
    found = class_scores(CONFUSION, [["a", "b"], ["c", "d", "e"]])
    expected = precision_recall_fscore_support(TRUTH, PREDICTED)
    for name, values in zip(("precision", "recall", "f1"), expected, strict=False):
        assert [getattr(each, name) for each in found] == pytest.approx(100 * values)
    assert [each.samples for each in found] == expected[3].tolist()
    assert [(each.label, each.task) for each in found] == [("a", 1), ("b", 1), ("c", 2), ("d", 2), ("e", 2)]


def test_what_cannot_be_computed_is_none() -> None:
    never, none = class_scores(np.array([[0, 3], [0, 0]]), [["never predicted", "no samples"]])
    assert (never.precision, never.recall, never.f1) == (None, 0.0, 0.0)
    assert (none.precision, none.recall, none.f1) == (0.0, None, 0.0)


def test_the_calibration_error_is_the_mean_distance_over_samples() -> None:
    confidence, right = np.array([0.95, 0.95, 0.55, 0.55, 1.0, 0.0]), np.array([True, False, True, True, True, False])
    found = Calibration.of(confidence, right)
    # 0.95 and 1.0 fall into the last of 15 bins, 0.55 into the ninth, 0 into the first.
    assert [(n, each.samples, each.right) for n, each in enumerate(found.bins) if each.samples] == [
        (0, 1, 0),
        (8, 2, 2),
        (14, 3, 2),
    ]
    assert found.ece == pytest.approx(100 * (abs(2 - 2.9) + abs(2 - 1.1)) / 6)
    assert found.mean_confidence == pytest.approx(100 * 4.0 / 6)
    assert found.accuracy == pytest.approx(100 * 4 / 6)
    assert len(found.bins) == BINS


def test_calibrations_of_parts_add_up() -> None:
    confidence, right = RNG.random(300), RNG.random(300) < 0.5
    parts = [Calibration.of(confidence[rows], right[rows]) for rows in (slice(100), slice(100, 300))]
    whole = Calibration.of(confidence, right)
    merged = Calibration.merge(parts)
    assert [each.samples for each in merged.bins] == [each.samples for each in whole.bins]
    assert merged.ece == pytest.approx(whole.ece)


def test_errors_of_old_and_new_classes() -> None:
    counts = np.array([[5, 1, 2], [0, 6, 3], [4, 0, 8]])
    assert old_against_new(counts, 1) == OldNew(
        old_samples=17,
        new_samples=12,
        old_accuracy=100 * 11 / 17,
        new_accuracy=100 * 8 / 12,
        old_as_new=5,
        new_as_old=4,
        within_old=1,
        within_new=0,
    )
    assert old_against_new(counts, 3) is None
    assert old_against_new(counts, 0) is None


def test_the_most_confident_mistakes_come_first() -> None:
    confidence, predicted, truth = np.array([0.9, 0.5, 0.8, 0.99]), np.array([1, 1, 0, 1]), np.array([0, 1, 1, 1])
    assert confident_mistakes(confidence, predicted, truth).tolist() == [0, 2]
    assert len(confident_mistakes(np.ones(99), np.ones(99), np.zeros(99))) == MAX_MISTAKES


def test_mistakes_of_parts_are_merged_by_confidence() -> None:
    parts = [
        Mistakes(tuple(Mistake("row 0", "a", "b", value) for value in values), np.array(values)[:, None])
        for values in ([90.0, 50.0], [70.0])
    ]
    merged = Mistakes.merge([Mistakes(), *parts])
    assert [each.confidence for each in merged.each] == [90.0, 70.0, 50.0]
    assert merged.inputs is not None
    assert merged.inputs.tolist() == [[90.0], [70.0], [50.0]]
    assert Mistakes.merge([Mistakes(), Mistakes()]) == Mistakes()


def test_images_become_bytes_of_a_bounded_size_and_other_samples_rows_of_values() -> None:
    assert displayable(np.full((1, 2, 2), 16, np.uint8), 1 / 16).tolist() == [[[255, 255], [255, 255]]]
    assert displayable(np.array([[[-2.0, 0.0, 2.0]]]), 1.0).tolist() == [[[0, 128, 255]]]  # by its own range
    assert displayable(np.zeros((2, 3, 300, 200)), 1.0).shape == (2, 3, 100, 67)
    assert displayable(np.zeros((2, 1, 8, 8)), 1.0).shape == (2, 8, 8)
    assert displayable(np.zeros((2, 100)), 1.0).shape == (2, 64)
    assert displayable(np.zeros((2, 6, 5, 5)), 1.0).shape == (2, 64)
