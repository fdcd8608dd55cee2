"""How features are brought to a common scale before classes are described in them; fixed by the first task."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from spacenet.utils.tensors import check_finite, check_shapes

WHAT = "the features' scale"
RIDGE = 0.1
"""Part of the mean variance that is added to every direction before whitening: small ones are not blown up."""


@dataclass(frozen=True)
class Scaling:
    """(h - mean) · factor. The factor is one number, or a matrix that makes the classes' mean covariance about 1."""

    mean: Tensor  # (d,)
    factor: Tensor  # () or (d, d)

    @classmethod
    def fit(cls, h: Tensor, y: Tensor, *, whiten: bool) -> "Scaling":
        """On the features (n, d) of the first task's samples, of the classes y."""
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

    def undone(self, z: Tensor) -> Tensor:
        """The features that `scaled` made z of."""
        return (torch.linalg.solve(self.factor.T, z.T).T if self.factor.dim() else z / self.factor) + self.mean

    def drawn_in(self, weight: Tensor) -> Tensor:
        """Weights of the features that do what these, (…, d), do with the scaled ones, but for the mean; of 64 bits."""
        factor = self.factor.double()
        return weight.double() @ factor.T if factor.dim() else weight.double() * factor

    def scaled(self, h: Tensor) -> Tensor:
        """Features in the common scale."""
        centred = h - self.mean
        return centred @ self.factor if self.factor.dim() else centred.mul_(self.factor)

    def tensors(self) -> dict[str, Tensor]:
        return {"mean": self.mean, "factor": self.factor}

    @classmethod
    def load(cls, tensors: Mapping[str, Tensor]) -> "Scaling":
        return cls(tensors["mean"].clone(), tensors["factor"].clone())

    @staticmethod
    def check(tensors: Mapping[str, Tensor], dimensions: int, *, whiten: bool) -> None:
        """Raise `ValueError` if this is no scale of features of so many dimensions."""
        whitens = whiten and "factor" in tensors and tensors["factor"].dim() > 0  # one number where nothing varied
        check_shapes(tensors, {"mean": (dimensions,), "factor": (dimensions, dimensions) if whitens else ()}, WHAT)
        check_finite(tensors, {"mean": -math.inf, "factor": -math.inf}, WHAT)


def pooled_roots(h: Tensor, grid: int) -> Tensor:
    """Features of one layer for summaries: feature maps on a coarse grid, and roots, which are nearer to Gaussian."""
    if h.dim() == 4:
        h = torch.nn.functional.adaptive_avg_pool2d(h, grid)
    return h.flatten(1).clamp_min(0.0).sqrt()
