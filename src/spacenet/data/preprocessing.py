"""What is done to inputs before a network sees them, fitted once, on the first task: later ones must not enter it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

Array = np.ndarray[Any, Any]
UNLIKE = 10.0
"""Features have scales of their own if one varies by so many times more than they do in the middle."""


@dataclass(frozen=True)
class NormalizationSpec:
    """How raw values become inputs: what is known of the data, and what is left to be measured on the first task."""

    scale: float = 1.0
    """Brings the values to about 0…1."""
    mean: float | tuple[float, ...] | None = None
    """Published mean: one number, or one per channel of images; None: that of the first task."""
    std: float | tuple[float, ...] | None = None
    """Published standard deviation, likewise."""
    centering: float = 0.0
    """What is subtracted: 0 the mean above, 1 the first task's mean of each feature, between: a mixture."""
    each_feature: bool = False
    """Without a published one, features whose scales are unlike (length, income) are each divided by their own standard
    deviation. Of pixels all are divided by one: those that hardly vary in the first task may do so later."""


@dataclass(frozen=True)
class Normalization:
    """(x · scale − mean) / std, with numbers that broadcast to a sample's shape."""

    scale: float
    mean: Tensor
    std: Tensor

    @classmethod
    def fit(cls, first: Array, spec: NormalizationSpec) -> "Normalization":
        """For the raw inputs of the first task."""
        x = _scaled(first, spec.scale)
        constant = x.mean() if spec.mean is None else _per_channel(spec.mean)
        mean = torch.lerp(constant.expand(x.shape[1:]), x.mean(0), spec.centering)
        if isinstance(spec.std, tuple):
            return cls(spec.scale, mean, _per_channel(spec.std))
        if spec.std is None and spec.each_feature:
            own = (x - x.mean(0)).square().mean(0).sqrt()
            varying = own[own > 0]
            if len(varying) and varying.max() > UNLIKE * varying.median():
                return cls(spec.scale, mean, torch.where(own > 0, own, varying.median()))
        overall = spec.std or float((x - mean).square().mean().sqrt()) or 1.0
        return cls(spec.scale, mean, torch.tensor(overall))

    def __call__(self, x: Array) -> Tensor:
        return _scaled(x, self.scale).sub_(self.mean).div_(self.std)


def _scaled(x: Array, scale: float) -> Tensor:
    return torch.from_numpy(x.astype(np.float32)).mul_(scale)


def _per_channel(spec: float | tuple[float, ...]) -> Tensor:
    """Constants in a shape that goes with samples: (), or (c, 1, 1) for images (c, h, w)."""
    values = torch.tensor(spec)
    return values.reshape(-1, 1, 1) if isinstance(spec, tuple) else values
