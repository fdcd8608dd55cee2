"""Where an input belongs, and then which class: densities tell the tasks apart, the network helps within a task."""

from collections.abc import Sequence

import torch
from torch import Tensor


def combined(fit: Tensor, network: Tensor | None, tasks: Sequence[range], sharpness: float, weight: float) -> Tensor:
    """Logarithms of probabilities, (n, classes), as 64-bit numbers: what is nearly certain keeps its digits.

    fit        logarithms of the classes' densities at the inputs
    network    the network's scores; None where they count nothing
    tasks      the classes of each task
    sharpness  what densities of many features count: these are not as independent as a Gaussian has it
    weight     what the network counts beside them within a task
    """
    fit = fit.double() * sharpness
    if network is None:
        return torch.log_softmax(fit, 1)
    parts = []
    for classes in tasks:
        here = fit[:, classes.start : classes.stop]
        within = here + weight * network[:, classes.start : classes.stop]
        parts.append(torch.logsumexp(here, 1, keepdim=True) + torch.log_softmax(within, 1))
    return torch.log_softmax(torch.cat(parts, 1), 1)
