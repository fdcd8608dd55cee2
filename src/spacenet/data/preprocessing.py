"""The normalization of inputs. It is fitted once, on the first task: later tasks must not influence it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

Array = np.ndarray[Any, Any]
SCALE_RATIO = 10.0
"""Features have different scales if the largest standard deviation is this many times the median."""


@dataclass(frozen=True)
class NormalizationSpec:
    """How raw values become inputs: what is known of the data; what is None is measured on the first task."""

    scale: float = 1.0
    """Brings the values to about 0…1."""
    mean: float | tuple[float, ...] | None = None
    """Mean of the scaled values: one number, or one per channel of images."""
    std: float | tuple[float, ...] | None = None
    """Standard deviation of the scaled values, likewise."""
    centering: float = 0.0
    """What is subtracted: 0 for the mean above, 1 for the first task's mean of each feature, in between a mixture."""
    each_feature: bool = False
    """Without `std`, divide features of different scales (length, income) each by its own standard deviation. Not for
    pixels: those that hardly vary in the first task may do so later."""


@dataclass(frozen=True)
class Normalization:
    """(x · scale − mean) / std; `mean` and `std` broadcast to a sample's shape."""

    scale: float
    mean: Tensor
    std: Tensor

    @classmethod
    def fit(cls, first: Array, spec: NormalizationSpec) -> "Normalization":
        """Fit it to the raw inputs of the first task."""
        x = _to_scaled_tensor(first, spec.scale)
        constant = x.mean() if spec.mean is None else _per_channel(spec.mean)
        mean = torch.lerp(constant.expand(x.shape[1:]), x.mean(0), spec.centering)
        if isinstance(spec.std, tuple):
            return cls(spec.scale, mean, _per_channel(spec.std))
        if spec.std is None and spec.each_feature:
            own = (x - x.mean(0)).square().mean(0).sqrt()
            varying = own[own > 0]
            if len(varying) and varying.max() > SCALE_RATIO * varying.median():
                return cls(spec.scale, mean, torch.where(own > 0, own, varying.median()))
        overall = spec.std or float((x - mean).square().mean().sqrt()) or 1.0
        return cls(spec.scale, mean, torch.tensor(overall))

    def __call__(self, x: Array) -> Tensor:
        return _to_scaled_tensor(x, self.scale).sub_(self.mean).div_(self.std)


def _to_scaled_tensor(x: Array, scale: float) -> Tensor:
    return torch.from_numpy(x.astype(np.float32)).mul_(scale)


def _per_channel(spec: float | tuple[float, ...]) -> Tensor:
    """Constants in a shape that broadcasts to samples: (), or (c, 1, 1) for images (c, h, w)."""
    values = torch.tensor(spec)
    return values.reshape(-1, 1, 1) if isinstance(spec, tuple) else values
