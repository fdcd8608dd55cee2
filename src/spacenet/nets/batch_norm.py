"""Batch norm whose values belong to the unit: scale, shift and running statistics are reserved and frozen with it."""

import torch
from torch import Tensor
from torch.nn import functional as F

from spacenet.space.blueprint import BATCH_STATS, Params, UnitValue

MOMENTUM = 0.1
EPSILON = 1e-5


def norm_values(name: str = "norm") -> tuple[UnitValue, ...]:
    """The unit values of one batch norm; a layer that is normalised at several places has several."""
    return (
        UnitValue(f"{name}.scale", 1.0),
        UnitValue(f"{name}.shift"),
        UnitValue(f"{name}.mean", trained=False),
        UnitValue(f"{name}.var", 1.0, trained=False, least=0.0),
    )


def normalize(values: Params, layer: str, h: Tensor, name: str = "norm") -> Tensor:
    """Normalise a layer's units. In training, fresh units use the batch's statistics and update their own.

    All others use their stored statistics, in training too: a frozen unit's function must not depend on the batch.
    """
    scale, shift, mean, var = (values[f"{layer}.{name}.{part}"] for part in ("scale", "shift", "mean", "var"))
    uses_batch_stats = values.get(layer + BATCH_STATS)
    count = h.numel() // max(1, h.shape[1])
    if (
        uses_batch_stats is None or not len(uses_batch_stats) or count < 2
    ):  # one value has no spread that it could be measured by
        training = uses_batch_stats is not None and count > 1
        return F.batch_norm(h, mean, var, scale, shift, training=training, momentum=MOMENTUM, eps=EPSILON)
    if h.is_cuda:
        from spacenet.nets.batch_norm_cuda import partly_fresh

        return partly_fresh(h, scale, shift, mean, var, uses_batch_stats)
    others = [0, *range(2, h.dim())]
    batch_var, batch_mean = torch.var_mean(h.float(), others, correction=0)
    update(mean, var, batch_mean.detach(), batch_var.detach(), uses_batch_stats, count)
    used_mean = torch.where(uses_batch_stats, batch_mean, mean)
    factor = scale * torch.rsqrt(torch.where(uses_batch_stats, batch_var, var) + EPSILON)
    shape = (1, -1, *([1] * (h.dim() - 2)))
    return (h * factor.view(shape) + (shift - used_mean * factor).view(shape)).to(h.dtype)


def update(
    mean: Tensor, var: Tensor, batch_mean: Tensor, batch_var: Tensor, uses_batch_stats: Tensor, count: int
) -> None:
    """Bring the fresh units' running statistics up to date, in place."""
    rate = MOMENTUM * uses_batch_stats
    mean.lerp_(batch_mean, rate)
    var.lerp_(batch_var * (count / (count - 1)), rate)
