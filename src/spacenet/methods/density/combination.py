"""Combines class densities with the network's scores: densities decide between tasks, both within a task."""

from collections.abc import Sequence

import torch
from torch import Tensor

from spacenet.methods.density.logarithms import log_sum


def combine(fit: Tensor, network: Tensor | None, tasks: Sequence[range], sharpness: float, weight: float) -> Tensor:
    """Log-probabilities, (n, classes), up to a constant per sample. In 64 bits, so that probabilities near 1 keep their
    digits.

    fit        log-densities of the classes at the inputs
    network    the network's scores; None if they are not used
    tasks      the classes of each task
    sharpness  factor of the log-densities, because features are less independent than the Gaussians assume
    weight     factor of the network's scores within a task
    """
    fit = fit.double() * sharpness
    if network is None:
        return fit
    if len({len(classes) for classes in tasks}) == 1:  # all at once, which is much faster
        here, scores = (each.view(-1, len(tasks), len(tasks[0])) for each in (fit, network))
        return _combine_tasks(here, scores, weight).flatten(1)
    parts = []
    for classes in tasks:
        here, scores = (each[:, classes.start : classes.stop] for each in (fit, network))
        parts.append(_combine_tasks(here, scores, weight))
    return torch.cat(parts, 1)


def _combine_tasks(fit: Tensor, network: Tensor, weight: float) -> Tensor:
    """The task's log-probability plus that of each class within it; classes are the last dimension."""
    within = torch.log_softmax(torch.add(fit, network, alpha=weight), -1)
    return log_sum(fit) + within
