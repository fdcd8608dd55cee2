"""How well samples fit each class: all classes' summaries as a few matrices, for few large products."""

from collections.abc import Mapping

import torch
from torch import Tensor

from spacenet.density.summary import Summary


def matrices(classes: Summary, shrinkage: float) -> dict[str, Tensor]:
    """What `scores` computes with; the summaries of all classes are stacked into one.

    Each covariance is mixed with 1, the identity: (1 - s) C + s 1. Along a direction of C the inverse differs from 1/s
    by 1/s - 1/((1 - s) · variance + s). With the directions as long as the root of that, the distance of a sample is
    |d|²/s minus the square of what the directions see of d.
    """
    mixed = (1 - shrinkage) * classes.spread + shrinkage
    direction = classes.direction * (1 / shrinkage - 1 / mixed).sqrt()[..., None]
    constant = classes.weight - (mixed / shrinkage).log().sum(-1) / 2 - classes.mean.square().sum(-1) / (2 * shrinkage)
    seen = (direction @ classes.mean[..., None])[..., 0]
    mean = (classes.mean / shrinkage).flatten(0, 1)
    return {"constant": constant, "mean": mean, "direction": direction.flatten(0, 2), "seen": seen}


def scores(values: Mapping[str, Tensor], z: Tensor, shrinkage: float) -> Tensor:
    """The logarithm of each class's density at (n, d), up to a number that is the same for all: (n, classes)."""
    constant, seen = values["constant"], values["seen"]
    along = (z @ values["direction"].T).unflatten(1, seen.shape) - seen
    fit = (z @ values["mean"].T).unflatten(1, constant.shape) + constant + along.square().sum(-1) / 2
    return torch.logsumexp(fit, -1) - z.square().sum(1, keepdim=True) / (2 * shrinkage)
