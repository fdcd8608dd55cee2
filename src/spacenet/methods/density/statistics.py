"""The statistics of one class: a few Gaussians, each with its mean and the few directions of largest variance."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import torch
from torch import Generator, Tensor
from torch.nn import functional as F

from spacenet.utils.tensors import check_finite, check_shapes

WHAT = "the class statistics"
OVERSAMPLING, ROUNDS = 8, 2
"""Extra directions and iterations of the randomized search."""
CLUSTER_ROUNDS, CLUSTER_SAMPLES = 10, 1000
"""Iterations of k-means, and from how many samples centers are computed at most; the others join the nearest one."""
TINY = 1e-12
LEAST_WEIGHT = -64 * math.log(2)
"""The logarithm of the smallest fraction of samples that there can be."""
WIDE = 16
"""Matrix products are fastest when the number of columns is a multiple of this."""


@dataclass(frozen=True)
class ClassStatistics:
    """k Gaussians in d dimensions with r directions each. If there were too few samples, some Gaussians have no weight
    or some directions are zero; the first Gaussian always has a weight."""

    weight: Tensor  # (k,) logarithm of the fraction of the class's samples
    mean: Tensor  # (k, d)
    variance: Tensor  # (k, r) variance along each direction
    direction: Tensor  # (k, r, d) orthonormal
    rest: Tensor  # (k,) variance in any other direction

    @classmethod
    def fit(
        cls,
        z: Tensor,
        components: int,
        directions: int,
        rng: Generator,
        used: int | None = None,
        sample_weight: Tensor | None = None,
    ) -> "ClassStatistics":
        """Compute the statistics of a class's samples, (n, d). `used` is how many Gaussians may have a weight."""
        member = find_clusters(z, used or components, rng)
        own, given = [member == number for number in range(int(member.max()) + 1)], sample_weight
        parts = [_gaussian(z[rows], directions, rng, None if given is None else given[rows]) for rows in own]
        share = member.bincount(minlength=components) if given is None else member.bincount(given, components)
        weight = (share.to(z.dtype) / (len(z) if given is None else given.sum())).log()
        missing = components - len(parts)  # these Gaussians have no samples
        stacked = [torch.stack(part) for part in zip(*parts, strict=True)]
        return cls(weight, *(torch.cat([each, each.new_zeros(missing, *each.shape[1:])]) for each in stacked))

    @classmethod
    def concat(cls, classes: "ClassStatistics | None", new: Sequence["ClassStatistics"]) -> "ClassStatistics":
        """Stack the statistics of new classes behind those of several classes."""
        parts = [{name: part[None] for name, part in each.tensors().items()} for each in new]
        parts = parts if classes is None else [classes.tensors(), *parts]
        return cls(**{field.name: torch.cat([part[field.name] for part in parts]) for field in fields(cls)})

    def split(self) -> list["ClassStatistics"]:
        """The statistics of each class: the inverse of `concat`."""
        parts = self.tensors().items()
        return [ClassStatistics(**{name: part[number] for name, part in parts}) for number in range(len(self.weight))]

    def truncate(self, directions: int) -> "ClassStatistics":
        """The same with only the first directions, those of largest variance; the others' variance goes to `rest`."""
        dimensions = self.mean.shape[-1]
        found = self.direction.any(-1).sum(-1)
        variance = self.rest * (dimensions - found).clamp_min(1) + self.variance[..., directions:].sum(-1)
        rest = variance / (dimensions - found.clamp_max(directions)).clamp_min(1)
        fewer = self.variance[..., :directions], self.direction[..., :directions, :]
        return ClassStatistics(self.weight, self.mean, *fewer, rest)

    def tensors(self) -> dict[str, Tensor]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @staticmethod
    def check(tensors: Mapping[str, Tensor], classes: int, components: int, directions: int, dimensions: int) -> None:
        """Raise `ValueError` if these are not the stacked statistics of this number of classes."""
        each = (classes, components)
        inner = {"mean": (dimensions,), "variance": (directions,), "direction": (directions, dimensions)}
        shapes = {name: (*each, *inner.get(name, ())) for name in ("weight", *inner, "rest")}
        check_shapes(tensors, shapes, WHAT)
        check_finite(tensors, {"mean": -math.inf, "variance": 0.0, "direction": -math.inf, "rest": 0.0}, WHAT)
        weight = tensors["weight"]
        some = (weight <= 0) & (weight >= LEAST_WEIGHT)
        if not bool((some | (weight == -math.inf)).all() & some[:, 0].all()):
            raise ValueError(f"{WHAT}: weight has values that are not possible")

    def sample(self, count: int, rng: Generator) -> Tensor:
        """Draw samples, (count, d). They vary only along the directions: noise in all others would make it easy to tell
        them from real samples."""
        which = torch.multinomial(self.weight.exp(), count, replacement=True, generator=rng)
        along = torch.randn(count, self.variance.shape[1], generator=rng) * self.variance[which].sqrt()
        return self.mean[which] + (along[:, None] @ self.direction[which])[:, 0]


def _gaussian(
    z: Tensor, directions: int, rng: Generator, weight: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The mean, the variances and directions of the leading ones, and the mean variance in all others."""
    count, dimensions = z.shape
    mean = z.mean(0) if weight is None else weight @ z / weight.sum()
    centered = z - mean
    if weight is not None:
        centered = centered * (weight * (count / weight.sum())).sqrt()[:, None]
    total = torch.linalg.vector_norm(centered).square() / count
    found = min(directions, count - 1, dimensions)
    variance, direction = torch.zeros(directions), torch.zeros(directions, dimensions)
    if found:
        variance[:found], direction[:found] = _leading_directions(centered, found, rng)
    rest = ((total - variance.sum()) / max(1, dimensions - found)).clamp_min(0.0)
    return mean, variance, direction, rest


def _leading_directions(centered: Tensor, count: int, rng: Generator) -> tuple[Tensor, Tensor]:
    """The variances and directions of largest variance, by randomized SVD: a full one takes many times as long.

    Halko, Martinsson, Tropp: Finding structure with randomness. SIAM Review 53, 2011.
    """
    samples, dimensions = centered.shape
    more = min(-(-(count + OVERSAMPLING) // WIDE) * WIDE, samples, dimensions)
    basis = torch.linalg.qr(centered.T @ torch.randn(samples, more, generator=rng))[0]
    for _ in range(ROUNDS):
        basis = torch.linalg.qr(centered.T @ (centered @ basis))[0]
    projected = centered @ basis
    squares, rotation = torch.linalg.eigh(projected.T @ projected)  # the smallest first
    return (squares.flip(0)[:count] / samples).clamp_min(0.0), (basis @ rotation.flip(1)[:, :count]).T


def count_floats(components: int, directions: int, dimensions: int) -> int:
    """How many numbers the statistics of one class consist of."""
    return components * (2 + directions + dimensions * (directions + 1))


def find_clusters(z: Tensor, count: int, rng: Generator) -> Tensor:
    """k-means: the cluster number of each sample of (n, d), from 0 up without gaps; at most `count` clusters."""
    count = min(count, len(z))
    if count < 2:
        return torch.zeros(len(z), dtype=torch.long)
    some = z[torch.randperm(len(z), generator=rng)[:CLUSTER_SAMPLES]]
    center = _initial_centers(some, count, rng)
    for _ in range(CLUSTER_ROUNDS):
        member = F.one_hot(_nearest(some, center), count).to(z.dtype)
        size = member.sum(0)[:, None]
        # A cluster without samples keeps its center.
        center = torch.where(size > 0, member.T @ some / size.clamp_min(1), center)
    numbers: Tensor = _nearest(z, center).unique(return_inverse=True)[1]
    return numbers


def _initial_centers(z: Tensor, count: int, rng: Generator) -> Tensor:
    """k-means++: each center is drawn with a probability proportional to its squared distance from those before.

    Arthur, Vassilvitskii: k-means++: The Advantages of Careful Seeding. SODA, 2007.
    """
    chosen = [z[0]]
    distance = (z - z[0]).square().sum(1)
    for _ in range(1, count):
        more = z[torch.multinomial(distance + TINY, 1, generator=rng)[0]]
        distance = torch.minimum(distance, (z - more).square().sum(1))
        chosen.append(more)
    return torch.stack(chosen)


def _nearest(z: Tensor, center: Tensor) -> Tensor:
    return (z @ center.T * 2 - center.square().sum(1)).argmax(1)
