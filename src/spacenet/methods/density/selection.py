"""How much the network's scores count within a task, chosen on samples of that task which it was not trained on."""

import math

import torch
from torch import Generator, Tensor

FRACTION, LEAST = 0.2, 20
"""How much of each class is held out; a task that would hold out fewer samples than this holds out none."""
WEIGHTS = (0.0, 0.25, 1.0, 4.0, 16.0)
STANDARD_ERRORS = 2.0
"""A weight is worse than another if it makes more errors by more than this many standard errors of the difference."""


def hold_out(y: Tensor, classes: range, rng: Generator) -> Tensor | None:
    """Which of a task's samples are held out, (n,); None where there are too few, or only one class."""
    held = torch.zeros(len(y), dtype=torch.bool)
    for number in classes:
        rows = torch.nonzero(y == number)[:, 0]
        held[rows[torch.randperm(len(rows), generator=rng)[: int(FRACTION * len(rows))]]] = True
    return held if len(classes) > 1 and int(held.sum()) >= LEAST else None


def choose_weight(fit: Tensor, network: Tensor, y: Tensor) -> float:
    """The smallest weight of the network's scores that is not clearly worse than the best one.

    fit      log-densities of the task's classes at the held-out samples, with their factor, (n, classes)
    network  the network's scores of these classes
    y        the column of each sample's class
    """
    right = torch.stack([torch.add(fit, network, alpha=weight).argmax(1) == y for weight in WEIGHTS])
    best = right[right.sum(1).argmax()]
    for weight, own in zip(WEIGHTS, right, strict=True):
        # Samples that both have right, or both wrong, say nothing: the difference is a sum of the others' signs.
        if int(best.sum()) - int(own.sum()) <= STANDARD_ERRORS * math.sqrt(int((best != own).sum())):
            return weight
    raise AssertionError("the best weight is not worse than itself")
