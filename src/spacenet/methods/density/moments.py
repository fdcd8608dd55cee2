"""The weight, mean and scatter of Gaussians: all that is needed to add samples as if they had come with the others.

Sums of squares are merged as numerically stable as they can be:

    Chan, Golub, LeVeque: Algorithms for Computing the Sample Variance. The American Statistician 37, 1983
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Self

import torch
from torch import Tensor

from spacenet.methods.density.statistics import ClassStatistics
from spacenet.utils.tensors import lower_triangle, symmetric_matrix, triangle_size

WHAT, COUNTS = "the moments of classes", "counts"
NEGLIGIBLE = 1e-12
"""A variance that is this part of the largest is rounding."""
MOST = 1e30
"""The magnitude of a number in a file."""


@dataclass(frozen=True)
class Moments:
    """Of m Gaussians in d dimensions, in 64 bits, of features as they are."""

    count: Tensor  # (m,) the weight of all samples: their number, if each has the weight 1
    mean: Tensor  # (m, d)
    scatter: Tensor  # (m, d (d + 1) / 2): the weighted sum of (h - mean)(h - mean)ᵀ, without its upper part

    @classmethod
    def measure(cls, h: Tensor, weight: Tensor | None = None) -> Self:
        """Of one Gaussian with these samples, (n, d), and their weights, (n,)."""
        h = h.double()
        weight = torch.ones(len(h), dtype=torch.double) if weight is None else weight.double()
        count = weight.sum()
        mean = weight @ h / count
        centered = (h - mean) * weight.sqrt()[:, None]
        return cls(count[None], mean[None], lower_triangle(centered.T @ centered)[None])

    @classmethod
    def concat(cls, parts: Sequence[Self]) -> Self:
        return cls(*(torch.cat([getattr(part, field.name) for part in parts]) for field in fields(cls)))

    def __len__(self) -> int:
        return len(self.count)

    def __getitem__(self, rows: slice | Tensor) -> Self:
        return type(self)(self.count[rows], self.mean[rows], self.scatter[rows])

    def merge(self) -> Self:
        """One Gaussian with the samples of all of these."""
        count = self.count.sum()
        mean = self.count @ self.mean / count
        away = (self.mean - mean) * self.count.sqrt()[:, None]
        return type(self)(count[None], mean[None], (self.scatter.sum(0) + lower_triangle(away.T @ away))[None])

    def add(self, number: int, other: Self) -> Self:
        """The same with the samples of `other`, one Gaussian, in that with this number."""
        both = type(self).concat([self[number : number + 1], other]).merge()
        return type(self).concat([self[:number], both, self[number + 1 :]])

    def covariance(self, number: int) -> Tensor:
        return symmetric_matrix(self.scatter[number]) / self.count[number]

    def describe(self, components: int, directions: int, mean: Tensor, factor: Tensor) -> ClassStatistics:
        """The statistics of a class of which these are the Gaussians, where a feature h is scaled to
        (h - mean) · factor, by a number or a symmetric matrix."""
        factor = factor.double()
        weight = torch.full((components,), -math.inf)
        weight[: len(self)] = (self.count / self.count.sum()).log().float()
        centered = self.mean - mean.double()
        means = centered @ factor if factor.dim() else centered * factor
        found = [self._leading(number, directions, factor) for number in range(len(self))]
        stacked = [means.float(), *(torch.stack(part).float() for part in zip(*found, strict=True))]
        missing = components - len(self)
        return ClassStatistics(weight, *(torch.cat([p, p.new_zeros(missing, *p.shape[1:])]) for p in stacked))

    def _leading(self, number: int, directions: int, factor: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The variances and directions of the largest ones, and the mean variance in all others."""
        covariance = self.covariance(number)
        covariance = factor @ covariance @ factor if factor.dim() else covariance * factor.square()
        values, vectors = torch.linalg.eigh(covariance)  # the smallest first
        values, vectors, dimensions = values.flip(0).clamp_min(0.0), vectors.flip(1).T, len(values)
        found = min(directions, int((values > NEGLIGIBLE * values[0]).sum()))
        variance = torch.zeros(directions, dtype=torch.double)
        direction = torch.zeros(directions, dimensions, dtype=torch.double)
        variance[:found], direction[:found] = values[:found], vectors[:found]
        return variance, direction, values[found:].sum() / max(1, dimensions - found)

    def tensors(self) -> dict[str, Tensor]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @staticmethod
    def check(tensors: Mapping[str, Tensor], gaussians: int, dimensions: int) -> None:
        """Raise `ValueError` if these are not the moments of so many Gaussians."""
        shapes = {"count": (gaussians,), "mean": (gaussians, dimensions)}
        shapes["scatter"] = gaussians, triangle_size(dimensions)
        if set(tensors) != set(shapes):
            raise ValueError(f"{WHAT}: unknown or missing content")
        for name, shape in shapes.items():
            held = tensors[name]
            if held.dtype != torch.float64 or tuple(held.shape) != shape or not bool((held.abs() <= MOST).all()):
                raise ValueError(f"{WHAT}: {name} is of the wrong size or has values that are not possible")
        rows = torch.arange(dimensions)
        diagonal = tensors["scatter"][:, rows * (rows + 3) // 2]
        if not bool((tensors["count"] > 0).all() & (diagonal >= 0).all()):
            raise ValueError(f"{WHAT}: counts or variances below 0")


def measure_parts(h: Tensor, member: Tensor, weight: Tensor | None = None) -> Moments:
    """The moments of samples, (n, d), for each Gaussian: `member` says to which one they belong."""
    rows = [member == number for number in range(int(member.max()) + 1)]
    return Moments.concat([Moments.measure(h[own], None if weight is None else weight[own]) for own in rows])


def concat_counts(before: Tensor | None, new: Tensor, known: int) -> Tensor | None:
    """How many samples there were of each class; None if that is not known of the classes before."""
    if before is None:
        return None if known else new
    return torch.cat([before, new])


def take_counts(tensors: Mapping[str, Tensor], classes: int) -> dict[str, Tensor]:
    """The other tensors. Raises `ValueError` if the counts, which may be missing, are not possible."""
    counts = tensors.get(COUNTS)
    if counts is not None:
        right = counts.dtype == torch.float64 and tuple(counts.shape) == (classes,)
        if not right or not bool(((counts > 0) & (counts <= MOST)).all()):
            raise ValueError(f"{WHAT}: counts are of the wrong size or not possible")
    return {name: tensor for name, tensor in tensors.items() if name != COUNTS}
