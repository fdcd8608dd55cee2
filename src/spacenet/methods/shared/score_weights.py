"""The weights that join the experts' scores with class statistics, see `methods.spacenet_experts`: given, or chosen on
samples of each task that it was not trained on.

A task's samples are gone when it ends. So only the accuracy with each candidate is kept, summed over the tasks.
"""

from dataclasses import dataclass
from typing import Annotated, Literal, Self

import torch
from annotated_types import Ge, Le
from torch import Tensor

Weight = Annotated[float, Ge(0), Le(1e6)] | Literal["auto"]
STATISTICS_WEIGHTS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0)
OWN_WEIGHTS = (0.0, 0.02, 0.05, 0.1, 0.2)
"""The candidates, in ascending order."""
STATISTICS_WEIGHT, OWN_WEIGHT = 0.15, 0.05
"""The weights before any candidate was measured."""


@dataclass(frozen=True)
class ScoreWeights:
    """What log-densities are multiplied by where they are added to the experts' scores."""

    statistics: float
    """Of densities given the first expert's features."""
    own: float
    """Of densities given the features of each class's own expert."""

    def add_up(self, score: Tensor, typical: Tensor | None, fit: Tensor | None) -> Tensor:
        """The experts' scores with log-densities given their own and the first expert's features, where there are."""
        for weight, part in ((self.own, typical), (self.statistics, fit)):
            score = score if part is None or not weight else score + weight * part.to(score.dtype)
        return score


@dataclass(frozen=True)
class CandidateWeights:
    """The weights to choose from; a weight that is given has no other candidate."""

    statistics: tuple[float, ...] = STATISTICS_WEIGHTS
    own: tuple[float, ...] = OWN_WEIGHTS

    @classmethod
    def of(cls, statistics: Weight, own: Weight) -> Self:
        """The candidates with these settings."""
        return cls(
            STATISTICS_WEIGHTS if isinstance(statistics, str) else (statistics,),
            OWN_WEIGHTS if isinstance(own, str) else (own,),
        )

    @property
    def undecided(self) -> bool:
        """Whether there is more than one pair of weights."""
        return len(self.statistics) * len(self.own) > 1

    def measure(self, score: Tensor, typical: Tensor | None, fit: Tensor | None, y: Tensor) -> Tensor:
        """The accuracy on samples with each pair of weights, (statistics, own), in 64 bits.

        score    the experts' scores of all classes, (n, classes)
        typical  log-densities of the classes given the features of their own experts, if there are any
        fit      those given the first expert's features, if there are any
        y        the column of each sample's class
        """
        found = [
            [(ScoreWeights(first, own).add_up(score, typical, fit).argmax(1) == y).double().mean() for own in self.own]
            for first in self.statistics
        ]
        return torch.stack([torch.stack(row) for row in found])

    def choose(self, sums: Tensor) -> ScoreWeights:
        """The pair with the largest sum of what `measure` returned for several tasks, of equal ones the smallest
        weights; what is usual if `sums` is empty."""
        if not len(sums):
            usual = zip((self.statistics, self.own), (STATISTICS_WEIGHT, OWN_WEIGHT), strict=True)
            return ScoreWeights(*(each[0] if len(each) == 1 else weight for each, weight in usual))
        first, own = divmod(int(sums.flatten().argmax()), len(self.own))
        return ScoreWeights(self.statistics[first], self.own[own])

    def check(self, sums: Tensor, tasks: int) -> None:
        """Raise `ValueError` if these cannot be the sums after this number of tasks, the first of which is not
        measured."""
        right = self.undecided and sums.dtype == torch.double
        right = right and tuple(sums.shape) == (len(self.statistics), len(self.own))
        if not right or not bool(((sums >= 0) & (sums <= tasks - 1)).all()):  # false for NaN too
            raise ValueError("the weights of class statistics: accuracies that are not possible")
