"""Gradients of single samples: the importance of weights is computed from them, not from the gradient of a batch."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.func import grad, vmap

from spacenet.data.stream import Samples
from spacenet.space.blueprint import Blueprint, Params

CHUNK = 25
"""Samples at a time. The gradient of each is as large as the network."""


def sample_subset(data: Samples, count: int, rng: torch.Generator) -> Samples:
    """A random subset of `count` samples, or all of them if there are fewer."""
    rows = torch.randperm(len(data), generator=rng)[:count]
    return Samples(data.x[rows], data.y[rows])


def mean_gradients(
    blueprint: Blueprint,
    params: Params,
    x: Tensor,
    y: Tensor,
    objective: Callable[[Tensor, Tensor], Tensor],
    measure: Callable[[Tensor], Tensor],
) -> dict[str, Tensor]:
    """The mean over samples of `measure(gradient)`, for each trained parameter.

    `objective` gets a sample's scores and its y. Batch norm uses its stored statistics, so samples are independent.
    """
    trained = {name: param.detach() for name, param in params.items() if param.requires_grad}
    fixed = {name: param.detach() for name, param in params.items() if name not in trained}

    def of_sample(inner: dict[str, Tensor], one_x: Tensor, one_y: Tensor) -> Tensor:
        return objective(blueprint.forward({**inner, **fixed}, one_x.unsqueeze(0))[0], one_y)

    of_samples = vmap(grad(of_sample), in_dims=(None, 0, 0))
    sums = {name: torch.zeros_like(param) for name, param in trained.items()}
    for some_x, some_y in zip(x.split(CHUNK), y.split(CHUNK), strict=True):
        for name, gradient in of_samples(trained, some_x, some_y).items():
            sums[name] += measure(gradient).sum(0)
    return {name: total / len(x) for name, total in sums.items()}
