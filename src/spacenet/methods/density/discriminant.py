"""Log-densities of all classes with one large matrix product, and their combination with the network's scores."""

from collections.abc import Sequence

import torch
from torch import Tensor

from spacenet.methods.density.scaling import Scaling
from spacenet.methods.density.statistics import ClassStatistics
from spacenet.space.blueprint import Params


def compute_params(classes: ClassStatistics, scaling: Scaling, shrinkage: float) -> dict[str, Tensor]:
    """What `scores` computes with, from the stacked statistics of all classes.

    Each covariance C is shrunk to (1 - s) C + s 1. Along a direction of C, its inverse differs from 1/s by
    1/s - 1/((1 - s) · variance + s). Directions are scaled to the root of half of that. Then half the squared distance
    of a sample z from the mean m is |z - m|²/2s minus the squared projections of z - m on the directions. |z|²/2s is
    the same for all Gaussians and left out. The rest is linear in z except for the squares, and z is linear in the
    features.
    """
    mixed = (1 - shrinkage) * classes.variance.double() + shrinkage
    mean = classes.mean.double() / shrinkage
    direction = classes.direction.double() * (1 / shrinkage - 1 / mixed).div(2).sqrt()[..., None]
    constant = classes.weight - (mixed / shrinkage).log().sum(-1) / 2 - (mean * classes.mean).sum(-1) / 2
    seen = (direction @ classes.mean.double()[..., None])[..., 0]
    weight = scaling.fold_into(torch.cat([mean[..., None, :], direction], -2))
    bias = torch.cat([constant[..., None], -seen], -1) - weight @ scaling.mean.double()
    return {"weight": weight.flatten(0, 2).float(), "bias": bias.float()}


def scores(params: Params, h: Tensor) -> Tensor:
    """The log-density of each class at features (n, d), up to a constant that all classes share: (n, classes)."""
    bias = params["bias"]  # (classes, Gaussians, 1 + directions)
    found = torch.addmm(bias.flatten(), h, params["weight"].T).view(-1, *bias.shape)
    return log_sum(found[..., 0] + found[..., 1:].square().sum(-1))[..., 0]


def combine(fit: Tensor, network: Tensor | None, tasks: Sequence[range], sharpness: float, weight: float) -> Tensor:
    """Log-probabilities, (n, classes), up to a constant per sample: densities decide between tasks, both within a task.

    fit        log-densities of the classes at the inputs
    network    the network's scores; None if they are not used
    tasks      the classes of each task
    sharpness  factor of the log-densities, because features are less independent than the Gaussians assume
    weight     factor of the network's scores within a task
    """
    fit = fit.double() * sharpness  # in 64 bits, so that probabilities near 1 keep their digits
    if network is None:
        return fit
    if len({len(classes) for classes in tasks}) == 1:  # all at once, which is much faster
        here, scores = (each.view(-1, len(tasks), len(tasks[0])) for each in (fit, network))
        return _combine_tasks(here, scores, weight).flatten(1)
    columns = [slice(classes.start, classes.stop) for classes in tasks]
    return torch.cat([_combine_tasks(fit[:, own], network[:, own], weight) for own in columns], 1)


def _combine_tasks(fit: Tensor, network: Tensor, weight: float) -> Tensor:
    """The task's log-probability plus that of each class within it; classes are the last dimension."""
    return log_sum(fit) + torch.log_softmax(torch.add(fit, network, alpha=weight), -1)


def log_sum(logarithms: Tensor) -> Tensor:
    """torch.logsumexp over the last dimension, with keepdim. The first element must not be minus infinity.
    Uses a few operations that other runtimes compute without overflow too."""
    return (logarithms - torch.log_softmax(logarithms, -1))[..., :1]
