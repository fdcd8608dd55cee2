"""The summary of one class: a few Gaussians, each with its mean and the few directions in which it varies most."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import torch
from torch import Generator, Tensor

from spacenet.methods.density.clusters import clusters
from spacenet.utils.tensors import check_finite, check_shapes

WHAT = "the classes' summaries"
OVERSAMPLING, ROUNDS = 8, 2
"""Directions more than asked for, and rounds, while the leading ones are sought."""
WIDE = 16
"""Products with a multiple of so many columns take half the time of those with a few less."""


@dataclass(frozen=True)
class ClassStatistics:
    """k Gaussians in d dimensions, with r directions each. Where samples were too few for so many Gaussians or
    directions, some have no weight, or no length; the first Gaussian always has."""

    weight: Tensor  # (k,) the part of the class's samples, as a logarithm
    mean: Tensor  # (k, d)
    variance: Tensor  # (k, r) variance along each direction
    direction: Tensor  # (k, r, d) at right angles to one another, each of length 1
    rest: Tensor  # (k,) variance in any other direction

    @classmethod
    def of(cls, z: Tensor, components: int, directions: int, rng: Generator) -> "ClassStatistics":
        """Of a class's samples, (n, d)."""
        member = clusters(z, components, rng)
        parts = [_gaussian(z[member == number], directions, rng) for number in range(int(member.max()) + 1)]
        weight = (member.bincount(minlength=components).to(z.dtype) / len(z)).log()
        parts += [_nothing(z.shape[1], directions)] * (components - len(parts))
        return cls(weight, *(torch.stack(part) for part in zip(*parts, strict=True)))

    @classmethod
    def concat(cls, classes: "ClassStatistics | None", new: Sequence["ClassStatistics"]) -> "ClassStatistics":
        """Summaries of several classes, stacked, and new ones behind them."""
        before = [classes] if classes is not None else []
        stacked = [{name: part[None] for name, part in summary.tensors().items()} for summary in new]
        parts = [*(summary.tensors() for summary in before), *stacked]
        return cls(**{field.name: torch.cat([part[field.name] for part in parts]) for field in fields(cls)})

    def apart(self) -> list["ClassStatistics"]:
        """The summaries that `concat` put together."""
        return [
            ClassStatistics(**{name: part[number] for name, part in self.tensors().items()})
            for number in range(len(self.weight))
        ]

    def truncate(self, directions: int) -> "ClassStatistics":
        """The same with only the first directions, in which the samples vary most; what the others had is rest."""
        dimensions = self.mean.shape[-1]
        found = self.direction.any(-1).sum(-1)
        variance = self.rest * (dimensions - found).clamp_min(1) + self.variance[..., directions:].sum(-1)
        rest = variance / (dimensions - found.clamp_max(directions)).clamp_min(1)
        fewer = self.variance[..., :directions], self.direction[..., :directions, :]
        return ClassStatistics(self.weight, self.mean, *fewer, rest)

    def tensors(self) -> dict[str, Tensor]:
        """The parts by name, for a file."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def load(cls, tensors: Mapping[str, Tensor]) -> "ClassStatistics":
        """Take back what `tensors` gave."""
        return cls(**{field.name: tensors[field.name].clone() for field in fields(cls)})

    @staticmethod
    def check(tensors: Mapping[str, Tensor], classes: int, components: int, directions: int, dimensions: int) -> None:
        """Raise `ValueError` if these are not the stacked summaries of so many classes."""
        each = (classes, components)
        shapes: dict[str, tuple[int, ...]] = {
            "weight": each,
            "mean": (*each, dimensions),
            "variance": (*each, directions),
        }
        check_shapes(tensors, {**shapes, "direction": (*each, directions, dimensions), "rest": each}, WHAT)
        check_finite(tensors, {"mean": -math.inf, "variance": 0.0, "direction": -math.inf, "rest": 0.0}, WHAT)
        weight = tensors["weight"]
        if not bool((weight <= 0).all() & (weight[:, 0] > -math.inf).all()):
            raise ValueError(f"{WHAT}: weight has values that are not possible")

    def sample(self, count: int, rng: Generator) -> Tensor:
        """So many samples that such a class could have, (count, d). They vary along the directions alone: noise in all
        others would be the first thing that one knows them by."""
        which = torch.multinomial(self.weight.exp(), count, replacement=True, generator=rng)
        along = torch.randn(count, self.variance.shape[1], generator=rng) * self.variance[which].sqrt()
        return self.mean[which] + (along[:, None] @ self.direction[which])[:, 0]


def _gaussian(z: Tensor, directions: int, rng: Generator) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Mean, variances and directions of the leading ones, and the mean variance in all others."""
    count, dimensions = z.shape
    mean = z.mean(0)
    centred = z - mean
    total = torch.linalg.vector_norm(centred).square() / count
    found = min(directions, count - 1, dimensions)
    variance, direction = torch.zeros(directions), torch.zeros(directions, dimensions)
    if found:
        variance[:found], direction[:found] = _leading(centred, found, rng)
    rest = ((total - variance.sum()) / max(1, dimensions - found)).clamp_min(0.0)
    return mean, variance, direction, rest


def _nothing(dimensions: int, directions: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return torch.zeros(dimensions), torch.zeros(directions), torch.zeros(directions, dimensions), torch.zeros(())


def _leading(centred: Tensor, count: int, rng: Generator) -> tuple[Tensor, Tensor]:
    """The directions of largest variance, by a randomised search: a full decomposition takes many times as long.

    Halko, Martinsson, Tropp: Finding structure with randomness. SIAM Review 53, 2011.
    """
    samples, dimensions = centred.shape
    more = min(-(-(count + OVERSAMPLING) // WIDE) * WIDE, samples, dimensions)
    basis = torch.linalg.qr(centred.T @ torch.randn(samples, more, generator=rng))[0]
    for _ in range(ROUNDS):
        basis = torch.linalg.qr(centred.T @ (centred @ basis))[0]
    seen = centred @ basis
    squares, turned = torch.linalg.eigh(seen.T @ seen)  # the smallest first
    return (squares.flip(0)[:count] / samples).clamp_min(0.0), (basis @ turned.flip(1)[:, :count]).T


def floats_of(components: int, directions: int, dimensions: int) -> int:
    """How many numbers a summary has."""
    return components * (2 + directions + dimensions * (directions + 1))
