"""The operations that forward functions are written with: sending activations over a link, and batch norm."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from spacenet.space.blueprint import BATCH_STATS, PRECOMPUTED, Forward, Hook, Link, Params, UnitValue

MOMENTUM = 0.1
EPSILON = 1e-5


_log_softmax, _log_softmax_backward = (
    torch.ops.aten._log_softmax.default,
    torch.ops.aten._log_softmax_backward_data.default,
)
_nll_loss, _nll_loss_backward = torch.ops.aten.nll_loss_forward.default, torch.ops.aten.nll_loss_backward.default
_MEAN, _NO_CLASS = 1, -100  # how the losses are reduced, and the class that does not count


def as_images(x: Tensor) -> Tensor:
    """(n, c, h, w), also from images without channels."""
    return x if x.dim() == 4 else x.unsqueeze(1)


def connect(params: Params, link: Link, h: Tensor, hook: Hook | None) -> Tensor:
    """Send `h` over a link. Every forward function calls this for each of its links."""
    if hook is not None:
        hook(link.name, h)
    weight = params[link.name]
    if len(link.kernel) == 2:
        out = F.conv2d(h, weight, stride=link.stride, padding=link.kernel[0] // 2)
    elif weight.layout == torch.sparse_csr:
        out = torch.sparse.mm(weight, h.flatten(1).t().contiguous()).t()
    else:
        out = F.linear(h.flatten(1), weight.flatten(1))
    precomputed = params.get(link.name + PRECOMPUTED)
    return out if precomputed is None else out + precomputed


def cross_entropy(scores: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """The loss and its gradient, by the same kernels as with autograd, in less than half the time."""
    logarithms = _log_softmax(scores, 1, False)
    loss, weight = _nll_loss(logarithms, target, None, _MEAN, _NO_CLASS)
    gradient = _nll_loss_backward(torch.ones_like(loss), logarithms, target, None, _MEAN, _NO_CLASS, weight)
    return loss, _log_softmax_backward(gradient, logarithms, 1, scores.dtype)


def chain_with_norm(links: Sequence[Link], pooled: Collection[Link]) -> Forward:
    """The forward function of links in a chain: batch norm and ReLU follow each but the last, max pooling some."""
    *hidden, classify = links

    def forward(params: Params, x: Tensor, hook: Hook | None = None) -> Tensor:
        h = as_images(x)
        for link in hidden:
            h = torch.relu(normalize(params, link.target, connect(params, link, h, hook)))
            if link in pooled:
                h = F.max_pool2d(h, 2)
        return connect(params, classify, h, hook) + params[f"{classify.target}.bias"]

    return forward


def norm_values(name: str = "norm") -> tuple[UnitValue, ...]:
    """The unit values of one batch norm; a layer that is normalized at several places has several."""
    return (
        UnitValue(f"{name}.scale", 1.0),
        UnitValue(f"{name}.shift"),
        UnitValue(f"{name}.mean", trained=False),
        UnitValue(f"{name}.var", 1.0, trained=False, least=0.0),
    )


def normalize(params: Params, layer: str, h: Tensor, name: str = "norm") -> Tensor:
    """Batch norm whose values belong to the unit: scale, shift and running statistics are frozen with it.

    In training, the units that `BATCH_STATS` marks use the batch's statistics and update their own. All others use
    their stored statistics, in training too: a frozen unit's function must not depend on the batch.
    """
    scale, shift, mean, var = (params[f"{layer}.{name}.{part}"] for part in ("scale", "shift", "mean", "var"))
    uses_batch_stats = params.get(layer + BATCH_STATS)
    count = h.numel() // max(1, h.shape[1])
    # Empty marks stand for all units. The variance of a single number is unknown.
    if uses_batch_stats is None or not len(uses_batch_stats) or count < 2:
        training = uses_batch_stats is not None and count > 1
        return F.batch_norm(h, mean, var, scale, shift, training=training, momentum=MOMENTUM, eps=EPSILON)
    if h.is_cuda:
        return normalize_partly(h, scale, shift, mean, var, uses_batch_stats)
    others = [0, *range(2, h.dim())]
    batch_var, batch_mean = torch.var_mean(h.float(), others, correction=0)
    update_statistics(mean, var, batch_mean.detach(), batch_var.detach(), uses_batch_stats, count)
    used_mean = torch.where(uses_batch_stats, batch_mean, mean)
    factor = scale * torch.rsqrt(torch.where(uses_batch_stats, batch_var, var) + EPSILON)
    shape = (1, -1, *([1] * (h.dim() - 2)))
    return (h * factor.view(shape) + (shift - used_mean * factor).view(shape)).to(h.dtype)


def update_statistics(
    mean: Tensor, var: Tensor, batch_mean: Tensor, batch_var: Tensor, uses_batch_stats: Tensor, count: int
) -> None:
    """Update the running statistics of the marked units, in place."""
    rate = MOMENTUM * uses_batch_stats
    mean.lerp_(batch_mean, rate)
    var.lerp_(batch_var * (count / (count - 1)), rate)


class NormalizePartly(torch.autograd.Function):
    """Batch norm on a GPU where only the marked units use the batch's statistics, in one pass each way.

    The kernels are those of torch's synchronized batch norm, which take the statistics as arguments: here those of the
    batch for the marked units and the stored ones for the others. Only the batch's statistics pass gradients on.
    """

    @staticmethod
    def forward(
        ctx: Any, h: Tensor, scale: Tensor, shift: Tensor, mean: Tensor, var: Tensor, uses_batch_stats: Tensor
    ) -> Tensor:
        batch_mean, batch_factor = torch.batch_norm_stats(h, EPSILON)
        batch_var = batch_factor.pow(-2) - EPSILON
        update_statistics(mean, var, batch_mean, batch_var, uses_batch_stats, h.numel() // h.shape[1])
        used_mean = torch.where(uses_batch_stats, batch_mean, mean)
        factor = torch.where(uses_batch_stats, batch_factor, torch.rsqrt(var + EPSILON))
        ctx.save_for_backward(h, scale, used_mean, factor, uses_batch_stats)
        out: Tensor = torch.batch_norm_elemt(h, scale, shift, used_mean, factor, EPSILON)
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
