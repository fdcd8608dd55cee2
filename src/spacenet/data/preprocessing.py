"""The normalization of inputs. It is fitted once, on the first task: later tasks must not influence it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spacenet.config.model import PreprocessingConfig

Array = np.ndarray[Any, Any]
SMALLEST = 1e-15
SCALE_RATIO = 10.0
"""Features have different scales if the largest standard deviation is this many times the median."""


@dataclass(frozen=True)
class Normalization:
    """(x · scale − mean) / std; `mean` and `std` broadcast to a sample's shape."""

    scale: float
    mean: Tensor
    std: Tensor

    @classmethod
    def fit(cls, first: Array, config: PreprocessingConfig) -> "Normalization":
        """Fit it to the raw inputs of the first task."""
        scale = 1.0 if config.scale is None else config.scale
        x = _to_scaled_tensor(first, scale)
        constant = x.mean() if config.mean is None else _per_channel(config.mean)
        mean = torch.lerp(constant.expand(x.shape[1:]), x.mean(0), config.centering)
        if isinstance(config.std, tuple):
            return cls(scale, mean, _per_channel(config.std))
        # Not for pixels: those that hardly vary in the first task may do so later.
        if config.std is None and config.per_feature_std:
            own = (x - x.mean(0)).square().mean(0).sqrt()
            varying = own[own > 0]
            if len(varying) and varying.max() > SCALE_RATIO * varying.median():
                return cls(scale, mean, torch.where(own > 0, own, varying.median()))
        spread = x - mean
        overall = config.std or float(spread.square().mean().sqrt())
        if overall < SMALLEST:  # squares of very small numbers are 0 in 32 bits
            overall = float(spread.double().square().mean().sqrt()) or 1.0
        return cls(scale, mean, torch.tensor(overall))

    def __call__(self, x: Array) -> Tensor:
        return _to_scaled_tensor(x, self.scale).sub_(self.mean).div_(self.std)


def _to_scaled_tensor(x: Array, scale: float) -> Tensor:
    return torch.from_numpy(x.astype(np.float32)).mul_(scale)


def _per_channel(constants: float | tuple[float, ...]) -> Tensor:
    """Constants in a shape that broadcasts to samples: (), or (c, 1, 1) for images (c, h, w)."""
    values = torch.tensor(constants)
    return values.reshape(-1, 1, 1) if isinstance(constants, tuple) else values
