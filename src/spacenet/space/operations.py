"""The operations that networks consist of: sending activations over links, and batch norm."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from spacenet.space.blueprint import BATCH_STATS, PRECOMPUTED, Hook, Link, Params, UnitValue

MOMENTUM = 0.1
EPSILON = 1e-5


_log_softmax, _log_softmax_backward = (
    torch.ops.aten._log_softmax.default,
    torch.ops.aten._log_softmax_backward_data.default,
)
_nll_loss, _nll_loss_backward = torch.ops.aten.nll_loss_forward.default, torch.ops.aten.nll_loss_backward.default
_MEAN, _NO_CLASS = 1, -100  # how the losses are reduced, and the class that does not count


def connect(params: Params, link: Link, h: Tensor, hook: Hook | None) -> Tensor:
    """Send `h` over a link."""
    if hook is not None:
        hook(link.name, h)
    weight = params[link.name]
    if weight.layout == torch.sparse_csr:
        out = torch.sparse.mm(weight, h.flatten(1).t().contiguous()).t()
    else:
        out = apply_weight(link, dense_weight(link, weight), h)
    precomputed = params.get(link.name + PRECOMPUTED)
    result: Tensor = out if precomputed is None else out + precomputed
    return result


def dense_weight(link: Link, weight: Tensor) -> Tensor:
    """A link's weights as a layer of PyTorch has them: (target features, source features, *kernel)."""
    (out, enter), (targets, sources) = link.each, weight.shape[:2]
    if out > 1:
        area = link.kernel[len(link.kernel) - len(link.stride) :]
        inner = weight.reshape(targets, sources, out, enter, -1).transpose(1, 2)
        return inner.reshape(targets * out, sources * enter, *area)
    return weight.flatten(1, 2) if enter > 1 else weight


def apply_weight(link: Link, weight: Tensor, h: Tensor) -> Tensor:
    """A link's linear map or convolution, with weights as a layer of PyTorch has them."""
    if not link.stride:
        return F.linear(h.flatten(1), weight)
    convolution = F.conv2d if len(link.stride) == 2 else F.conv1d
    return convolution(h, weight, None, link.stride, link.padding, link.dilation)


def connect_all(params: Params, links: Sequence[Link], h: Tensor, hook: Hook | None) -> Tensor:
    """Send `h`, the concatenated features of several layers, over the links from these layers to one."""
    if len(links) == 1:
        return connect(params, links[0], h, hook)
    parts = h.split([params[link.name].shape[1] * link.each[1] for link in links], 1)
    if hook is None and all(params[link.name].layout == torch.strided for link in links):
        # One product instead of several.
        weight = torch.cat([dense_weight(link, params[link.name]) for link in links], 1)
        out = apply_weight(links[0], weight, h)
        fixed = [params[link.name + PRECOMPUTED] for link in links if link.name + PRECOMPUTED in params]
        return sum(fixed, out)
    outs = [connect(params, link, part, hook) for link, part in zip(links, parts, strict=True)]
    return sum(outs[1:], outs[0])


def cross_entropy(scores: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """The loss and its gradient, by the same kernels as with autograd, in less than half the time."""
    logarithms = _log_softmax(scores, 1, False)
    loss, weight = _nll_loss(logarithms, target, None, _MEAN, _NO_CLASS)
    gradient = _nll_loss_backward(torch.ones_like(loss), logarithms, target, None, _MEAN, _NO_CLASS, weight)
    return loss, _log_softmax_backward(gradient, logarithms, 1, scores.dtype)


def add_phantoms(scores: Tensor, weight: float) -> Tensor:
    """The scores, and one more that weighs as much as this many classes of score 0: its logarithm."""
    return F.pad(scores, (0, 1), value=math.log(weight)) if weight else scores


def norm_values(name: str, shape: tuple[int, ...] = ()) -> tuple[UnitValue, ...]:
    """The unit values of one batch norm; a layer that is normalized at several places has several."""
    return (
        UnitValue(f"{name}.scale", 1.0, shape=shape),
        UnitValue(f"{name}.shift", shape=shape),
        UnitValue(f"{name}.mean", trained=False, shape=shape),
        UnitValue(f"{name}.var", 1.0, trained=False, least=0.0, shape=shape),
    )


def normalize(
    params: Params, layer: str, h: Tensor, name: str, epsilon: float = EPSILON, momentum: float = MOMENTUM
) -> Tensor:
    """Batch norm whose values belong to the unit: scale, shift and running statistics are frozen with it.

    In training, the units that `BATCH_STATS` marks use the batch's statistics and update their own. All others use
    their stored statistics, in training too: a frozen unit's function must not depend on the batch.
    """
    values = [params[f"{layer}.{name}.{part}"] for part in ("scale", "shift", "mean", "var")]
    each = values[0].numel() // max(1, len(values[0]))
    scale, shift, mean, var = (value.flatten() for value in values) if each > 1 else values
    uses_batch_stats = params.get(layer + BATCH_STATS)
    count = h.numel() // max(1, h.shape[1])
    # Empty marks stand for all units. The variance of a single number is unknown.
    if uses_batch_stats is None or not len(uses_batch_stats) or count < 2:
        training = uses_batch_stats is not None and count > 1
        return F.batch_norm(h, mean, var, scale, shift, training=training, momentum=momentum, eps=epsilon)
    if each > 1:
        uses_batch_stats = uses_batch_stats.repeat_interleave(each)
    if h.is_cuda:
        return normalize_partly(h, scale, shift, mean, var, uses_batch_stats, epsilon, momentum)
    others = [0, *range(2, h.dim())]
    batch_var, batch_mean = torch.var_mean(h.float(), others, correction=0)
    update_statistics(mean, var, batch_mean.detach(), batch_var.detach(), uses_batch_stats, count, momentum)
    used_mean = torch.where(uses_batch_stats, batch_mean, mean)
    factor = scale * torch.rsqrt(torch.where(uses_batch_stats, batch_var, var) + epsilon)
    shape = (1, -1, *([1] * (h.dim() - 2)))
    return (h * factor.view(shape) + (shift - used_mean * factor).view(shape)).to(h.dtype)


def update_statistics(
    mean: Tensor,
    var: Tensor,
    batch_mean: Tensor,
    batch_var: Tensor,
    uses_batch_stats: Tensor,
    count: int,
    momentum: float = MOMENTUM,
) -> None:
    """Update the running statistics of the marked units, in place."""
    rate = momentum * uses_batch_stats
    mean.lerp_(batch_mean, rate)
    var.lerp_(batch_var * (count / (count - 1)), rate)


class NormalizePartly(torch.autograd.Function):
    """Batch norm on a GPU where only the marked units use the batch's statistics, in one pass each way.

    The kernels are those of torch's synchronized batch norm, which take the statistics as arguments: here those of the
    batch for the marked units and the stored ones for the others. Only the batch's statistics pass gradients on.
    """

    @staticmethod
    def forward(
        ctx: Any,
        h: Tensor,
        scale: Tensor,
        shift: Tensor,
        mean: Tensor,
        var: Tensor,
        uses_batch_stats: Tensor,
        epsilon: float,
        momentum: float,
    ) -> Tensor:
        batch_mean, batch_factor = torch.batch_norm_stats(h, epsilon)
        batch_var = (batch_factor.pow(-2) - epsilon).clamp_(min=0.0)  # rounding: that of a constant map can be below 0
        update_statistics(mean, var, batch_mean, batch_var, uses_batch_stats, h.numel() // h.shape[1], momentum)
        used_mean = torch.where(uses_batch_stats, batch_mean, mean)
        factor = torch.where(uses_batch_stats, batch_factor, torch.rsqrt(var + epsilon))
        ctx.save_for_backward(h, scale, used_mean, factor, uses_batch_stats)
        out: Tensor = torch.batch_norm_elemt(h, scale, shift, used_mean, factor, epsilon)
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
        return of_h, of_scale, of_shift, None, None, None, None, None


normalize_partly: Callable[..., Tensor] = NormalizePartly.apply
