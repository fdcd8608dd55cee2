"""Log-densities of all classes with one large matrix product."""

import torch
from torch import Tensor

from spacenet.methods.density.logarithms import log_sum
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
    """The log-density of each class at features (n, d), up to a constant that all classes share: (n, classes).

    The bias is of the shape (classes, Gaussians, 1 + directions).
    """
    bias = params["bias"]
    found = torch.addmm(bias.flatten(), h, params["weight"].T).view(-1, *bias.shape)
    return log_sum(found[..., 0] + found[..., 1:].square().sum(-1))[..., 0]
