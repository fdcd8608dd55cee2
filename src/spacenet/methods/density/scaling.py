"""Scales features before class statistics are computed on them. The first task determines the scale."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from spacenet.utils.tensors import check_finite, check_shapes

WHAT = "the features' scale"
RIDGE = 0.1
"""Fraction of the mean variance that is added in every direction before whitening, to limit small ones."""


@dataclass(frozen=True)
class Scaling:
    """(h - mean) · factor. The factor is one number, or a matrix that makes the classes' mean covariance about 1."""

    mean: Tensor  # (d,)
    factor: Tensor  # () or (d, d)

    @classmethod
    def fit(cls, h: Tensor, y: Tensor, *, whiten: bool) -> "Scaling":
        """Determine the scale from features (n, d) and labels y of the first task's samples."""
        means, squares, products = [], torch.zeros(()), torch.zeros(())
        for number in y.unique():
            own = h[y == number]
            means.append(own.mean(0))
            own -= means[-1]
            squares = squares + torch.linalg.vector_norm(own).square()
            products = products + own.T @ own if whiten else products
        mean, variance = torch.stack(means).mean(0), squares / h.numel()
        if not variance > 0:
            return cls(mean, torch.ones(()))
        if not whiten:
            return cls(mean, variance.rsqrt())
        covariance = (products / len(h)).double()
        covariance += RIDGE * float(variance) * torch.eye(len(covariance), dtype=torch.double)
        values, vectors = torch.linalg.eigh(covariance)
        return cls(mean, (vectors / values.sqrt() @ vectors.T).float())

    def unscale(self, z: Tensor) -> Tensor:
        """The inverse of `scale`."""
        return (torch.linalg.solve(self.factor.T, z.T).T if self.factor.dim() else z / self.factor) + self.mean

    def fold_into(self, weight: Tensor) -> Tensor:
        """Weights for unscaled features that equal these, (…, d), for scaled ones, except for the mean. In 64 bits."""
        factor = self.factor.double()
        return weight.double() @ factor.T if factor.dim() else weight.double() * factor

    def scale(self, h: Tensor) -> Tensor:
        """Features in the common scale."""
        centered = h - self.mean
        return centered @ self.factor if self.factor.dim() else centered.mul_(self.factor)

    def tensors(self) -> dict[str, Tensor]:
        return {"mean": self.mean, "factor": self.factor}

    @staticmethod
    def check(tensors: Mapping[str, Tensor], dimensions: int, *, whiten: bool) -> None:
        """Raise `ValueError` if this is not the scaling of features with this number of dimensions."""
        whitens = whiten and "factor" in tensors and tensors["factor"].dim() > 0  # a single number if nothing varied
        check_shapes(tensors, {"mean": (dimensions,), "factor": (dimensions, dimensions) if whitens else ()}, WHAT)
        check_finite(tensors, {"mean": -math.inf, "factor": -math.inf}, WHAT)


def pool_roots(h: Tensor, grid: int) -> Tensor:
    """Features of one layer: feature maps averaged on a coarse grid, and square roots, which are closer to Gaussian."""
    if h.dim() == 4:
        h = torch.nn.functional.adaptive_avg_pool2d(h, grid)
    return h.flatten(1).clamp_min(0.0).sqrt()
