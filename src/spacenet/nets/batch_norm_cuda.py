"""Batch norm of units of which only some are fresh, in one pass each on a GPU.

The kernels are those of torch's synchronised batch norm, which leaves open where the statistics come from: here from
the batch for fresh units and from the past for the others. Only fresh units' statistics pass gradients on.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from spacenet.nets import batch_norm


class PartlyFresh(torch.autograd.Function):
    """(h, scale, shift, running mean, running variance, which are fresh) → normalised h; the running ones change."""

    @staticmethod
    def forward(
        ctx: Any, h: Tensor, scale: Tensor, shift: Tensor, mean: Tensor, var: Tensor, uses_batch_stats: Tensor
    ) -> Tensor:
        batch_mean, batch_factor = torch.batch_norm_stats(h, batch_norm.EPSILON)
        batch_var = batch_factor.pow(-2) - batch_norm.EPSILON
        batch_norm.update(mean, var, batch_mean, batch_var, uses_batch_stats, h.numel() // h.shape[1])
        used_mean = torch.where(uses_batch_stats, batch_mean, mean)
        factor = torch.where(uses_batch_stats, batch_factor, torch.rsqrt(var + batch_norm.EPSILON))
        ctx.save_for_backward(h, scale, used_mean, factor, uses_batch_stats)
        out: Tensor = torch.batch_norm_elemt(h, scale, shift, used_mean, factor, batch_norm.EPSILON)
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        h, scale, mean, factor, uses_batch_stats = ctx.saved_tensors
        layout = torch.channels_last if h.is_contiguous(memory_format=torch.channels_last) else torch.contiguous_format
        gradient = gradients[0].contiguous(memory_format=layout)
        along, across, of_scale, of_shift = torch.batch_norm_backward_reduce(
            gradient, h, mean, factor, scale, True, True, True
        )
        count = torch.full((1,), h.numel() // h.shape[1], dtype=torch.int32, device=h.device)
        of_h = torch.batch_norm_backward_elemt(
            gradient, h, mean, factor, scale, along * uses_batch_stats, across * uses_batch_stats, count
        )
        return of_h, of_scale, of_shift, None, None, None


partly_fresh: Callable[..., Tensor] = PartlyFresh.apply
