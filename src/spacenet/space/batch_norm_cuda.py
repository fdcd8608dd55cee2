"""Batch norm on a GPU where only some units use the batch's statistics, in one pass each way.

The kernels are those of torch's synchronized batch norm, which take the statistics as arguments: here those of the
batch for the marked units and the stored ones for the others. Only the batch's statistics pass gradients on.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from spacenet.space import operations


class NormalizePartly(torch.autograd.Function):
    """(h, scale, shift, running mean, running variance, marks) → normalized h; the running statistics change."""

    @staticmethod
    def forward(
        ctx: Any, h: Tensor, scale: Tensor, shift: Tensor, mean: Tensor, var: Tensor, uses_batch_stats: Tensor
    ) -> Tensor:
        batch_mean, batch_factor = torch.batch_norm_stats(h, operations.EPSILON)
        batch_var = batch_factor.pow(-2) - operations.EPSILON
        operations.update_statistics(mean, var, batch_mean, batch_var, uses_batch_stats, h.numel() // h.shape[1])
        used_mean = torch.where(uses_batch_stats, batch_mean, mean)
        factor = torch.where(uses_batch_stats, batch_factor, torch.rsqrt(var + operations.EPSILON))
        ctx.save_for_backward(h, scale, used_mean, factor, uses_batch_stats)
        out: Tensor = torch.batch_norm_elemt(h, scale, shift, used_mean, factor, operations.EPSILON)
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


normalize_partly: Callable[..., Tensor] = NormalizePartly.apply
