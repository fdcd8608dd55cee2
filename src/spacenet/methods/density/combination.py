"""Where an input belongs, and then which class: densities tell the tasks apart, the network helps within a task."""

from collections.abc import Sequence

import torch
from torch import Tensor

from spacenet.methods.density.logarithms import log_sum


def combined(fit: Tensor, network: Tensor | None, tasks: Sequence[range], sharpness: float, weight: float) -> Tensor:
    """Logarithms of probabilities, (n, classes), up to a number that is the same for all classes of a sample; as 64-bit
    numbers: what is nearly certain keeps its digits.

    fit        logarithms of the classes' densities at the inputs
    network    the network's scores; None where they count nothing
    tasks      the classes of each task
    sharpness  what densities of many features count: these are not as independent as a Gaussian has it
    weight     what the network counts beside them within a task
    """
    fit = fit.double() * sharpness
    if network is None:
        return fit
    if len({len(classes) for classes in tasks}) == 1:  # all at once, which takes a fraction of the time
        here, answer = (each.view(-1, len(tasks), len(tasks[0])) for each in (fit, network))
        return _of_tasks(here, answer, weight).flatten(1)
    parts = []
    for classes in tasks:
        here, answer = (each[:, classes.start : classes.stop] for each in (fit, network))
        parts.append(_of_tasks(here, answer, weight))
    return torch.cat(parts, 1)


def _of_tasks(fit: Tensor, network: Tensor, weight: float) -> Tensor:
    """The task's probability, then that of each class within it; classes are the last dimension."""
    within = torch.log_softmax(torch.add(fit, network, alpha=weight), -1)
    return log_sum(fit) + within
