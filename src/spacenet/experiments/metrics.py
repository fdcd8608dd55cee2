"""The accuracy matrix, and everything computed from it. Accuracies are percentages."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from spacenet.data.stream import Samples
from spacenet.utils.text import MeanStd

__all__ = ["Matrix", "MeanStd", "Scores", "accuracies", "scores"]

Matrix = list[list[float]]
"""R: row j holds the accuracy on every task i after learning task j; tasks still to come are included."""


@dataclass(frozen=True)
class Scores:
    """The figures of one run (or of the first tasks of one that stopped early)."""

    acc: float
    """ACC: mean accuracy over the tasks learned, after the last of them (equation 7)."""
    bwt: float
    """BWT: mean change of each earlier task's accuracy since it was learned (equation 7)."""
    forgetting: float
    """Mean drop of each earlier task from the best accuracy it ever had."""
    fwt: float
    """Forward transfer: mean accuracy on a task just before learning it, above that of the untrained network.

    Where outputs appear with their task, as in all class-incremental methods here, it is 0: a class that has not been
    seen cannot be predicted."""
    learning_accuracy: float
    """Mean accuracy on each task right after learning it."""


def scores(matrix: Matrix, untrained: list[float]) -> Scores:
    """Compute the figures. `untrained` is the accuracy on each task before anything was learned."""
    learned = range(len(matrix))
    last, earlier = matrix[-1], learned[:-1]
    return Scores(
        acc=_mean([last[i] for i in learned]),
        bwt=_mean([last[i] - matrix[i][i] for i in earlier]),
        forgetting=_mean([max(matrix[j][i] for j in range(i, len(matrix) - 1)) - last[i] for i in earlier]),
        fwt=_mean([matrix[i - 1][i] - untrained[i] for i in learned[1:]]),
        learning_accuracy=_mean([matrix[i][i] for i in learned]),
    )


def accuracies(output: Tensor, tests: Sequence[Samples], classes: Sequence[range]) -> tuple[list[float], list[float]]:
    """Accuracy on each task: among all classes seen (class-incremental), and among the task's own (task-incremental).

    `output` has one row per sample of all `tests` and one column per class seen. A task not yet seen scores 0.
    """
    class_il, task_il = [], []
    for part, test, own in zip(output.split([len(test) for test in tests]), tests, classes, strict=True):
        seen = own.stop <= output.shape[1]
        class_il.append(_percent(part.argmax(1), test.y) if output.shape[1] else 0.0)
        task_il.append(_percent(part[:, own.start : own.stop].argmax(1) + own.start, test.y) if seen else 0.0)
    return class_il, task_il


def _percent(predicted: Tensor, truth: Tensor) -> float:
    return 100.0 * float((predicted == truth).to(torch.float64).mean()) if len(truth) else 0.0


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0
