"""How well scores of classes tell samples apart, whatever their scale, and the scale that makes probabilities of them.

A factor of all scores, the inverse of a temperature, does not change which class is the most probable one:

    Guo, Pleiss, Sun, Weinberger: On Calibration of Modern Neural Networks. ICML, 2017
"""

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from spacenet.utils.tensors import check_finite, check_shapes

FACTORS: tuple[float, ...] = tuple(2.0 ** (step / 4) for step in range(-20, 21))
"""Of the scores, from 1/32 to 32; the one under which the true classes are most probable is taken."""
DOUBT = 0.05
"""The probability that a sample tells nothing of its class, so that a single one cannot decide."""
SURE = 1.0
"""Log-likelihood that is too little to move the factor away from 1."""
WHAT, TABLE = "the calibration", "tasks"


def likelihoods(scores: Tensor, y: Tensor) -> Tensor:
    """The log-probability of the class y of each sample, (n,), by scores (n, classes) with the best factor."""
    each = _by_factor(scores, y)
    return each[each.sum(1).argmax()]


def _by_factor(scores: Tensor, y: Tensor) -> Tensor:
    """The same for each factor, (factors, n)."""
    rows, even = torch.arange(len(y)), DOUBT / scores.shape[1]
    found = [torch.softmax(scores.double() * factor, 1)[rows, y] for factor in FACTORS]
    return torch.stack(found).mul(1 - DOUBT).add(even).log()


class Calibration:
    """How probable the true classes of each task's held-out samples are, by the factor of all scores.

    A task's samples are compared with all classes known when it is learned. Log-likelihoods add up, so what earlier
    tasks found stays, and no samples are needed.
    """

    def __init__(self) -> None:
        self.table = torch.zeros(0, len(FACTORS))
        """The log-likelihood of each task's samples, less the largest of the task's; 0 where there were none."""

    def __len__(self) -> int:
        return len(self.table)

    def add(self, scores: Tensor, y: Tensor) -> None:
        """Add a task, given scores (n, classes) of samples that these were computed without, and their classes."""
        each = _by_factor(scores, y).sum(1) if len(y) else torch.zeros(len(FACTORS)).double()
        self.table = torch.cat([self.table, _below_largest(each)[None]])

    def update(self, task: int, scores: Tensor, y: Tensor) -> None:
        """Take in more samples of a task's classes, given scores that were computed without them."""
        each = self.table[task].double() + _by_factor(scores, y).sum(1)
        self.table[task] = _below_largest(each)

    @property
    def factor(self) -> float:
        """Of all scores: the one nearest to 1 that is about as good as the best."""
        total = self.table.double().sum(0)
        good = torch.nonzero(total >= total.max() - SURE)[:, 0].tolist()
        factors = [FACTORS[int(number)] for number in good]
        return min(factors, key=lambda factor: abs(math.log(factor)))

    def tensors(self) -> dict[str, Tensor]:
        return {TABLE: self.table} if len(self.table) else {}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        self.table = tensors.get(TABLE, Calibration().table)

    @staticmethod
    def check(tensors: Mapping[str, Tensor], tasks: int) -> None:
        """Raise `ValueError` if `tensors` cannot have returned this for this number of tasks."""
        check_shapes(tensors, {TABLE: (tasks, len(FACTORS))}, WHAT)
        check_finite(tensors, {TABLE: -math.inf}, WHAT)
        if bool((tensors[TABLE] > 0).any()):
            raise ValueError(f"{WHAT}: {TABLE} has values that are not possible")


def _below_largest(each: Tensor) -> Tensor:
    """By how much log-likelihoods are below the largest; 0 where they are no numbers, so that they decide nothing."""
    below = (each - each.max()).float()
    return below if bool(below.isfinite().all()) else torch.zeros_like(below)
