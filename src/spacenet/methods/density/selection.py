"""How much the network's scores count within a task, chosen on samples of that task which it was not trained on."""

import math
from dataclasses import replace

import torch
from torch import Generator, Tensor

from spacenet.data.memory import select_rows
from spacenet.data.stream import Samples
from spacenet.methods.density.calibration import likelihoods

FRACTION, LEAST = 0.2, 20
"""How much of each class is held out; a task that would hold out fewer samples than this holds out none."""
WEIGHTS = (0.0, 0.25, 1.0, 4.0, 16.0)


def hold_out(y: Tensor, classes: range, rng: Generator) -> Tensor | None:
    """Which of a task's samples are held out, (n,); None where there are too few, or only one class."""
    held = torch.zeros(len(y), dtype=torch.bool)
    for number in classes:
        rows = torch.nonzero(y == number)[:, 0]
        held[rows[torch.randperm(len(rows), generator=rng)[: int(FRACTION * len(rows))]]] = True
    return held if len(classes) > 1 and int(held.sum()) >= LEAST else None


def drop_held_out(data: Samples, held: Tensor | None) -> Samples:
    """The samples that are not held out, given what `hold_out` returned."""
    if held is None:
        return data
    rows = torch.nonzero(~held)[:, 0]
    weight = None if data.weight is None else data.weight[rows]
    return replace(data, x=select_rows(data.x, rows), y=data.y[rows], weight=weight)


def choose_weight(fit: Tensor, network: Tensor, y: Tensor) -> float:
    """The weight of the network's scores: the likelihood says whether the network helps, the errors how much of it.

    0 if the true classes of held-out samples are most probable without the network. Otherwise the smallest weight that
    is not clearly worse than the one under which they are most probable: probabilities of a few samples say little of
    how far to go. Each weight has its own best factor of all scores, because the densities' scale is arbitrary, and
    with too small a one any second opinion would seem to help.

    fit      log-densities of the task's classes at the held-out samples, with their factor, (n, classes)
    network  the network's scores of these classes
    y        the column of each sample's class
    """
    sums = [torch.add(fit.double(), network.double(), alpha=weight) for weight in WEIGHTS]
    best = int(torch.stack([likelihoods(each, y).sum() for each in sums]).argmax())
    right = [each.argmax(1) == y for each in sums]
    for number in range(min(best, 1), best):
        # Samples that both have right, or both wrong, say nothing: the difference is a sum of the others' signs.
        more, differ = int(right[best].sum()) - int(right[number].sum()), int((right[best] != right[number]).sum())
        if more <= math.sqrt(differ):  # one standard error
            return WEIGHTS[number]
    return WEIGHTS[best]


def begin_evidence(weight: float) -> Tensor:
    """What is known of the network's weight in a task: the one that it began with, and for each of `WEIGHTS` the
    log-likelihood of the samples that came later, none yet. (1 + weights,)"""
    return torch.tensor([weight, *(0.0 for _ in WEIGHTS)], dtype=torch.double)


def add_evidence(known: Tensor, fit: Tensor, network: Tensor, y: Tensor) -> Tensor:
    """The same with more samples that neither statistics nor network have learned from; see `choose_weight`."""
    sums = [torch.add(fit.double(), network.double(), alpha=weight) for weight in WEIGHTS]
    return known + torch.stack([known.new_zeros(()), *(likelihoods(each, y).sum() for each in sums)])


def read_weight(known: Tensor) -> float:
    """The weight under which later samples are most probable: at most the one that it began with, because statistics
    improve with more samples, and a network that does not learn from them falls behind."""
    most = float(known[0])
    if not bool(known[1:].any()):
        return most
    allowed = [number for number, weight in enumerate(WEIGHTS) if weight <= most]
    return WEIGHTS[allowed[int(known[1:][allowed].argmax())]]


def check_evidence(known: Tensor, tasks: int) -> None:
    """Raise `ValueError` if this is not the evidence for so many tasks."""
    right = known.dtype == torch.double and tuple(known.shape) == (tasks, 1 + len(WEIGHTS))
    if not right or not bool((known.isfinite()).all() & (known[:, 0] >= 0).all()):
        raise ValueError("the network: evidence has values that are not possible")
