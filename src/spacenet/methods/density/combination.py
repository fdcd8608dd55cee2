"""The combination of densities, which decide between tasks, with the network's scores, which decide within them."""

from collections.abc import Sequence

import torch
from torch import Tensor

from spacenet.methods.density.densities import log_sum
from spacenet.methods.density.readout import readout_scores
from spacenet.space.blueprint import Params
from spacenet.space.pack import Pack
from spacenet.utils.tensors import in_section, section

WEIGHT, READOUT = "weight", "readout"


def combine_with(
    tasks: Sequence[range], weights: Tensor, sharpness: float, readout: Params, *, densest: bool = False
) -> Pack:
    """(params, representation, densities, the network's scores or None) → scores of all classes. `weights` are those of
    the network in each task; `readout` is what scores on random features are computed with, empty without these."""
    differ, reads_out = len(weights.unique()) > 1, bool(readout)
    weight = 1.0 if differ else float(weights[0])
    params = {WEIGHT: weights.repeat_interleave(torch.tensor([*map(len, tasks)]))} if differ else {}

    def forward(params: Params, h: Tensor, fit: Tensor, logits: Tensor | None) -> Tensor:
        if reads_out:
            fit = fit + readout_scores(section(params, READOUT), h) / sharpness
        if logits is not None and differ:
            logits = logits * params[WEIGHT]
        return combine(fit, logits, tasks, sharpness, weight, densest=densest)

    return Pack(forward, params | in_section(READOUT, readout))


def combine(
    fit: Tensor,
    network: Tensor | None,
    tasks: Sequence[range],
    sharpness: float,
    weight: float,
    *,
    densest: bool = False,
) -> Tensor:
    """Log-probabilities, (n, classes), up to a constant per sample: densities decide between tasks, both within a task.

    fit        log-densities of the classes at the inputs
    network    the network's scores; None if they are not used
    tasks      the classes of each task
               (a task that has none takes no part)
    sharpness  factor of the log-densities, because features are less independent than the Gaussians assume
    weight     factor of the network's scores within a task
    densest    the task of the densest class wins, however sure the network is within it; otherwise the most probable
               class, given its task, wins over all tasks
    """
    fit = fit.double() * sharpness  # in 64 bits, so that probabilities near 1 keep their digits
    if network is None:
        return fit
    tasks = [classes for classes in tasks if classes]
    join = _rank_tasks if densest else _combine_tasks
    if len({len(classes) for classes in tasks}) == 1:  # all at once, which is much faster
        here, scores = (each.view(-1, len(tasks), len(tasks[0])) for each in (fit, network))
        return join(here, scores, weight).flatten(1)
    columns = [slice(classes.start, classes.stop) for classes in tasks]
    return torch.cat([join(fit[:, own], network[:, own], weight) for own in columns], 1)


def _combine_tasks(fit: Tensor, network: Tensor, weight: float) -> Tensor:
    """The task's log-probability plus that of each class within it; classes are the last dimension."""
    return log_sum(fit) + torch.log_softmax(torch.add(fit, network, alpha=weight), -1)


def _rank_tasks(fit: Tensor, network: Tensor, weight: float) -> Tensor:
    """The best class of a task has the task's largest density, the others as much less as both together say."""
    both = torch.add(fit, network, alpha=weight)
    return fit.amax(-1, keepdim=True) + (both - both.amax(-1, keepdim=True))
