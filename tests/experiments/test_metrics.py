import pytest
import torch

from spacenet.data.stream import Samples
from spacenet.experiments.metrics import (
    Matrix,
    Record,
    accuracies,
    accuracies_so_far,
    average_incremental_accuracy,
    mean_so_far,
    scores,
)


def test_scores_of_a_hand_computed_matrix() -> None:
    matrix: Matrix = [[90.0, 10.0, 0.0], [70.0, 80.0, 20.0], [60.0, 85.0, 70.0]]
    result = scores(matrix, untrained=[0.0, 4.0, 6.0])
    assert result.acc == pytest.approx((60 + 85 + 70) / 3)
    assert result.aia == pytest.approx((90 + (70 + 80) / 2 + (60 + 85 + 70) / 3) / 3)
    assert result.bwt == pytest.approx(((60 - 90) + (85 - 80)) / 2)
    assert result.forgetting == pytest.approx(((90 - 60) + (80 - 85)) / 2)
    assert result.fwt == pytest.approx(((10 - 4) + (20 - 6)) / 2)
    assert result.learning_accuracy == pytest.approx((90 + 80 + 70) / 3)


def test_the_last_and_the_incremental_accuracy_are_over_all_samples() -> None:
    """A first task of 500 samples, then tasks of 50, as in the protocol of 50 classes and then 5 at a time."""
    samples = [500, 50, 50]
    matrix: Matrix = [[90.0, 0.0, 0.0], [80.0, 80.0, 0.0], [70.0, 60.0, 90.0]]  # in the end 350, 30 and 45 are right
    result = scores(matrix, [0.0] * 3, samples)
    assert result.acc == pytest.approx((70 + 60 + 90) / 3)
    assert result.last_acc == pytest.approx(100 * 425 / 600)
    assert accuracies_so_far(matrix, samples) == pytest.approx([90.0, 80.0, 100 * 425 / 600])
    assert result.aia == pytest.approx((90 + 80 + 100 * 425 / 600) / 3)
    assert result.forgetting == pytest.approx(((90 - 70) + (80 - 60)) / 2)  # of tasks, whatever their size
    assert scores(matrix, [0.0] * 3).last_acc == pytest.approx(result.acc)


def test_tasks_after_which_not_all_were_tested_are_left_out_of_the_average() -> None:
    matrix: Matrix = [[90.0, 0.0, 0.0], [None, 80.0, 0.0], [60.0, 60.0, 60.0]]
    assert average_incremental_accuracy(matrix) == pytest.approx((90 + 60) / 2)


def test_forgetting_counts_from_the_best_ever() -> None:
    matrix: Matrix = [[50.0, 0.0, 0.0], [90.0, 80.0, 0.0], [60.0, 80.0, 70.0]]
    assert scores(matrix, [0.0] * 3).forgetting == pytest.approx((30 + 0) / 2)
    assert scores(matrix, [0.0] * 3).bwt == pytest.approx((10 + 0) / 2)


def test_a_single_task_has_no_transfer() -> None:
    result = scores([[88.0]], [0.0])
    assert (result.acc, result.bwt, result.forgetting, result.fwt) == (88.0, 0.0, 0.0, 0.0)


def test_accuracies_with_and_without_the_task_identity() -> None:
    tests = [
        Samples(torch.zeros(2, 1), torch.tensor([0, 1])),
        Samples(torch.zeros(2, 1), torch.tensor([2, 3])),
        Samples(torch.zeros(1, 1), torch.tensor([4])),
    ]
    output = torch.tensor(
        [
            [5.0, 1.0, 0.0, 0.0],  # 0, right
            [1.0, 2.0, 9.0, 0.0],  # 1, taken for 2; right within its task
            [0.0, 0.0, 3.0, 1.0],  # 2, right
            [0.0, 0.0, 3.0, 1.0],  # 3, taken for 2 in both
            [9.0, 0.0, 0.0, 0.0],  # 4, not seen yet
        ]
    )
    free, task_il = accuracies(output, tests, [range(2), range(2, 4), range(4, 5)])
    assert free == [50.0, 50.0, 0.0]
    assert task_il == [100.0, 50.0, 0.0]


def test_before_the_first_task_nothing_is_known() -> None:
    tests = [Samples(torch.zeros(2, 1), torch.tensor([0, 1]))]
    assert accuracies(torch.zeros(2, 0), tests, [range(2)]) == ([0.0], [0.0])


def test_what_was_not_measured_is_left_out() -> None:
    matrix: Matrix = [[50.0, 0.0, 0.0, 0.0], [None, 80.0, 0.0, 0.0], [90.0, 70.0, 60.0, 0.0], [60.0, 70.0, 50.0, 40.0]]
    result = scores(matrix, [0.0] * 4)
    assert result.acc == pytest.approx((60 + 70 + 50 + 40) / 4)
    assert result.bwt == pytest.approx((10 - 10 - 10) / 3)
    assert result.forgetting == pytest.approx((30 + 10 + 10) / 3)
    assert mean_so_far(matrix[1], 2) is None
    assert mean_so_far(matrix[2], 3) == pytest.approx(220 / 3)


def test_a_record_is_restored_from_a_checkpoint() -> None:
    record = Record([0.0] * 3, [[90.0, 0.0, 0.0], [None, 100 / 3, 0.0]], [[95.0, 0.0, 0.0], [None, 70.0, 0.0]])
    assert Record.from_state(*record.to_state()) == record
    empty = Record([0.0] * 3)
    assert Record.from_state(*empty.to_state()) == empty
