"""How well samples fit each class: all classes' summaries as one matrix, for one large product."""

from collections.abc import Mapping

import torch
from torch import Tensor

from spacenet.methods.density.logarithms import log_sum
from spacenet.methods.density.scaling import Scaling
from spacenet.methods.density.statistics import ClassStatistics


def matrices(classes: ClassStatistics, scaling: Scaling, shrinkage: float) -> dict[str, Tensor]:
    """What `scores` computes with; the summaries of all classes are stacked into one.

    Each covariance is mixed with 1, the identity: (1 - s) C + s 1. Along a direction of C the inverse differs from 1/s
    by 1/s - 1/((1 - s) · variance + s). With the directions as long as the root of half of that, half the distance of a
    sample z from the mean m is |z - m|²/2s minus the squares of what the directions see of z - m. Of that, |z|²/2s is
    the same for all Gaussians and left out. The rest is linear in z but for the squares, and z is so in the features.
    """
    mixed = (1 - shrinkage) * classes.variance.double() + shrinkage
    mean = classes.mean.double() / shrinkage
    direction = classes.direction.double() * (1 / shrinkage - 1 / mixed).div(2).sqrt()[..., None]
    constant = classes.weight - (mixed / shrinkage).log().sum(-1) / 2 - (mean * classes.mean).sum(-1) / 2
    seen = (direction @ classes.mean.double()[..., None])[..., 0]
    weight = scaling.drawn_in(torch.cat([mean[..., None, :], direction], -2))
    bias = torch.cat([constant[..., None], -seen], -1) - weight @ scaling.mean.double()
    return {"weight": weight.flatten(0, 2).float(), "bias": bias.float()}


def scores(values: Mapping[str, Tensor], h: Tensor) -> Tensor:
    """The logarithm of each class's density at features (n, d), up to a number that is the same for all: (n, classes).

    The bias is of the shape (classes, Gaussians, 1 + directions).
    """
    bias = values["bias"]
    found = torch.addmm(bias.flatten(), h, values["weight"].T).view(-1, *bias.shape)
    return log_sum(found[..., 0] + found[..., 1:].square().sum(-1))[..., 0]
