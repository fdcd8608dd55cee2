"""Gradients of single samples, as importances of weights are made of: the gradient of a batch would not do."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor
from torch.func import grad, vmap

from spacenet.data.stream import Samples
from spacenet.space.blueprint import Blueprint

CHUNK = 25
"""Samples at a time; each has as many numbers as the network."""


def some_samples(data: Samples, count: int, rng: torch.Generator) -> Samples:
    """So many samples, or all there are."""
    rows = torch.randperm(len(data), generator=rng)[:count]
    return Samples(data.x[rows], data.y[rows])


def mean_of_gradients(
    blueprint: Blueprint,
    values: Mapping[str, Tensor],
    x: Tensor,
    y: Tensor,
    objective: Callable[[Tensor, Tensor], Tensor],
    measure: Callable[[Tensor], Tensor],
) -> dict[str, Tensor]:
    """For each trained value: the mean over samples of what `measure` makes of a sample's gradient.

    `objective` gets a sample's scores and its y. Batch norm uses its stored statistics, so samples stay apart.
    """
    trained = {name: value.detach() for name, value in values.items() if value.requires_grad}
    fixed = {name: value.detach() for name, value in values.items() if name not in trained}

    def of_sample(inner: dict[str, Tensor], one_x: Tensor, one_y: Tensor) -> Tensor:
        return objective(blueprint.forward({**inner, **fixed}, one_x.unsqueeze(0))[0], one_y)

    of_samples = vmap(grad(of_sample), in_dims=(None, 0, 0))
    sums = {name: torch.zeros_like(value) for name, value in trained.items()}
    for some_x, some_y in zip(x.split(CHUNK), y.split(CHUNK), strict=True):
        for name, gradient in of_samples(trained, some_x, some_y).items():
            sums[name] += measure(gradient).sum(0)
    return {name: total / len(x) for name, total in sums.items()}
