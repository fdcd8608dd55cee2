"""The common scale that features are brought to before class statistics are computed of them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from spacenet.methods.density.moments import Moments
from spacenet.utils.tensors import check_finite, check_shapes, lower_triangle, symmetric_matrix, triangle_size

SCALE = "the features' scale"
RIDGE = 0.1
"""Fraction of the mean variance that is added in every direction before whitening, to limit small ones."""


class FeatureScaling(Protocol):
    """How features are brought to the scale that statistics are in."""

    @property
    def mean(self) -> Tensor: ...
    @property
    def factor(self) -> Tensor:
        """A number or a matrix: (h - mean) · factor is in the common scale."""
        ...

    def scale(self, h: Tensor) -> Tensor: ...
    def unscale(self, z: Tensor) -> Tensor: ...
    def fold_into(self, weight: Tensor) -> Tensor: ...


@dataclass(frozen=True)
class Scaling:
    """(h - mean) · factor. The factor is one number, or a matrix that makes the classes' mean covariance about 1."""

    mean: Tensor  # (d,)
    factor: Tensor  # () or (d, d), symmetric

    @classmethod
    def fit(cls, h: Tensor, y: Tensor, *, whiten: bool, weight: Tensor | None = None) -> "Scaling":
        """Determine the scale from features (n, d) and labels y of the first task's samples."""
        if weight is not None:
            return cls.from_moments([Moments.measure(h[y == n], weight[y == n]) for n in y.unique()], whiten=whiten)
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
        return cls._whitening(mean, (products / len(h)).double(), variance)

    @classmethod
    def from_moments(cls, classes: Sequence[Moments], *, whiten: bool) -> "Scaling":
        """The same from the moments of the first task's classes."""
        merged = Moments.concat([each.merge() for each in classes])
        covariance = symmetric_matrix(merged.scatter.sum(0)) / merged.count.sum()
        mean, variance = merged.mean.mean(0).float(), covariance.diagonal().mean().float()
        if not variance > 0:
            return cls(mean, torch.ones(()))
        return cls._whitening(mean, covariance, variance) if whiten else cls(mean, variance.rsqrt())

    @classmethod
    def _whitening(cls, mean: Tensor, covariance: Tensor, variance: Tensor) -> "Scaling":
        """From the classes' mean covariance and its mean variance."""
        covariance = covariance + RIDGE * float(variance) * torch.eye(len(covariance), dtype=torch.double)
        values, vectors = torch.linalg.eigh(covariance)
        factor = (vectors / values.sqrt() @ vectors.T).float()
        factor = symmetric_matrix(lower_triangle(factor))  # to the last bit, to be kept as a triangle
        return cls(mean, factor)

    def tensors(self) -> dict[str, Tensor]:
        return {"mean": self.mean, "factor": lower_triangle(self.factor) if self.factor.dim() else self.factor}

    @classmethod
    def load(cls, tensors: Mapping[str, Tensor]) -> "Scaling":
        """From what `tensors` returned."""
        factor = tensors["factor"]
        return cls(tensors["mean"], symmetric_matrix(factor) if factor.dim() else factor)

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

    @staticmethod
    def check(tensors: Mapping[str, Tensor], dimensions: int, *, whiten: bool) -> None:
        """Raise `ValueError` if this is not the scaling of features with this number of dimensions."""
        whitens = whiten and "factor" in tensors and tensors["factor"].dim() > 0  # a single number if nothing varied
        shapes = {"mean": (dimensions,), "factor": (triangle_size(dimensions),) if whitens else ()}
        check_shapes(tensors, shapes, SCALE)
        check_finite(tensors, {"mean": -math.inf, "factor": -math.inf}, SCALE)
