"""Class statistics relative to the covariance that all classes have in common, to which every task adds.

Each class is a Gaussian whose covariance is a mixture of the common one and of a few directions of its own. With fewer
directions this becomes linear discriminant analysis, with less shrinkage quadratic discriminant analysis:

    Friedman: Regularized Discriminant Analysis. Journal of the American Statistical Association 84, 1989

The common covariance and the means are the same in whatever order classes come, and however they are cut into tasks.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Generator, Tensor
from torch.nn import functional

from spacenet.errors import RunError
from spacenet.methods.density.densities import MOST, Densities
from spacenet.methods.density.left_out import FEW, FOLDS, LeftOut
from spacenet.methods.density.moments import COUNTS, concat_counts, take_counts
from spacenet.methods.density.statistics import ClassStatistics
from spacenet.methods.density.updating import find_directions, leading_rows
from spacenet.space.blueprint import Params
from spacenet.utils.tensors import (
    check_finite,
    check_sections,
    check_shapes,
    in_section,
    lower_triangle,
    section,
    symmetric_matrix,
    triangle_size,
)
from spacenet.utils.threads import one_thread

LEAST_RIDGE, RIDGE, MOST_RIDGE = 0.03, 2.0, 4.0
"""Fraction of the mean variance that is added to the common covariance in every direction: `RIDGE` times the number of
features for each sample, within these bounds. Chosen on held-out images of CIFAR-100, 1 to 450 of each class."""
MAX_DIMENSIONS = 20_000
"""Features whose covariance is computed; it has 1.6 GB for this many."""
BATCH = 4096
SHARE = 0.5
"""Of what is typical of a class, so much is the mean of all classes. Chosen on random halves of CIFAR-100's classes."""
WHAT = "the class statistics"


@dataclass(frozen=True)
class Whitening:
    """Features for which the common covariance is 1: root⁻¹ (h − mean), where root · rootᵀ is the covariance."""

    mean: Tensor  # (d,)
    root: Tensor  # (d, d), lower triangular

    @classmethod
    def fit(cls, covariance: Tensor, samples: float, mean: Tensor) -> Self:
        """From a covariance, how many samples it was estimated from, and the mean of the classes."""
        dimensions, matrix = len(mean), covariance.double()
        ridge = min(MOST_RIDGE, max(LEAST_RIDGE, RIDGE * dimensions / samples))
        variance = float(matrix.diagonal().mean()) or 1.0  # a single sample does not vary
        return cls(mean, torch.linalg.cholesky(matrix + ridge * variance * torch.eye(dimensions).double()).float())

    @property
    def factor(self) -> Tensor:
        """`scale` as a matrix, (d, d): (h − mean) · factor."""
        inverse: Tensor = torch.linalg.solve_triangular(self.root, torch.eye(len(self.root)), upper=False)
        return inverse.T

    def scale(self, h: Tensor) -> Tensor:
        z: Tensor = torch.linalg.solve_triangular(self.root, (h - self.mean).T, upper=False)
        return z.T

    def unscale(self, z: Tensor) -> Tensor:
        """The inverse of `scale`."""
        return z @ self.root.T + self.mean

    def fold_into(self, weight: Tensor) -> Tensor:
        """Weights for unscaled features that equal these, (…, d), for scaled ones, except for the mean. In 64 bits."""
        flat = weight.double().flatten(0, -2)
        folded: Tensor = torch.linalg.solve_triangular(self.root.double().T, flat.T, upper=True)
        return folded.T.reshape(weight.shape)


@dataclass
class PooledDensities(Densities):
    """Class statistics on features whose common covariance is estimated from all classes.

    What is kept are the covariance, an origin, and of each class the mean and, as directions of its own, a matrix F for
    which FᵀF is its covariance there, both of unscaled features. `scaling` and `classes` follow from these.
    """

    covariance: Tensor | None = None
    """The mean covariance within classes, (d, d), of all samples so far."""
    samples: float = 0.0
    """How many these are."""
    origin: Tensor | None = None
    """The mean of the first task's classes when it was learned, (d,)."""
    means: Tensor | None = None
    """(classes, d)"""
    factors: Tensor | None = None
    """(classes, directions, d), in 16 bits: they are most of what is kept, and need few digits."""

    def add(self, h: Tensor, y: Tensor, classes: range, rng: Generator, weight: Tensor | None = None) -> None:
        with one_thread():  # a loaded model must have the same bits
            self._add_classes(h, y, classes, rng, weight)

    def _add_classes(self, h: Tensor, y: Tensor, classes: range, rng: Generator, weight: Tensor | None) -> None:
        known, own = len(self), [y == number for number in classes]
        given = [None if weight is None else weight[rows] for rows in own]
        counts = torch.stack([(rows if weight is None else weight[rows]).sum().double() for rows in own])
        new = torch.stack([_mean(h[rows], each) for rows, each in zip(own, given, strict=True)])
        self._add_covariance(h, y, dict(zip(classes, new, strict=True)), weight)
        means = new if self.means is None else torch.cat([self.means, new])
        self.origin = means.mean(0) if self.origin is None else self.origin
        whitening = self._fit_whitening()
        found = [self._find_factor(h[rows], whitening, rng, each) for rows, each in zip(own, given, strict=True)]
        factors = torch.stack(found)
        self.means, self.counts = means, concat_counts(self.counts, counts, known) if self.updatable else None
        self.factors = factors if self.factors is None else torch.cat([self.factors, factors])
        self._derive()

    def _add_covariance(self, h: Tensor, y: Tensor, means: Mapping[int, Tensor], weight: Tensor | None) -> None:
        """Add samples of these classes to the common covariance, given the mean of each class's."""
        dimensions, count = h.shape[1], len(h) if weight is None else float(weight.sum())
        if dimensions > MAX_DIMENSIONS:
            raise RunError(f"the covariance of {dimensions:,} features is too large; at most {MAX_DIMENSIONS:,}")
        if not float(h.abs().amax()) <= MOST:  # false for NaN too
            raise RunError("the statistics of a class cannot be computed: a feature is too large, or not a number")
        products = torch.zeros(dimensions, dimensions)
        for number, mean in means.items():
            around = h[y == number] - mean
            if weight is not None:
                around *= weight[y == number].sqrt()[:, None]
            for part in around.split(BATCH):
                products += part.T @ part
        self.samples += count
        before = torch.zeros_like(products) if self.covariance is None else self.covariance
        covariance = torch.lerp(before, products / count, count / self.samples)
        self.covariance = symmetric_matrix(lower_triangle(covariance))  # to the last bit: half of it is kept

    def _find_factor(self, own: Tensor, whitening: Whitening, rng: Generator, weight: Tensor | None) -> Tensor:
        found = ClassStatistics.fit(whitening.scale(own), 1, self.directions, rng, sample_weight=weight)
        return _to_half((found.variance[0].sqrt()[:, None] * found.direction[0]) @ whitening.root.T)

    def update(self, h: Tensor, y: Tensor, first: int, weight: Tensor | None = None) -> None:
        """Add more samples of known classes. Counts, means and the common covariance are as if all samples had come
        together; of a class's own directions the leading ones of the old and the new samples are kept."""
        with one_thread():
            self._update_classes(h, y, torch.ones(len(h)) if weight is None else weight)

    def _update_classes(self, h: Tensor, y: Tensor, weight: Tensor) -> None:
        assert self.counts is not None, "it is not known how many samples there were"
        assert self.means is not None
        assert self.factors is not None
        self.counts, means, factors = self.counts.clone(), self.means.clone(), self.factors.clone()
        numbers, rows = y.unique().tolist(), {}
        centers = {number: _mean(h[y == number], weight[y == number]) for number in numbers}
        self._add_covariance(h, y, centers, weight)
        apart = torch.zeros(h.shape[1], h.shape[1])
        for number, center in centers.items():
            own, before = y == number, float(self.counts[number])
            new = float(weight[own].sum())
            rows[number] = leading_rows(means[number].double(), before, h[own].double(), weight[own].double())
            shift = center - means[number]
            apart += before * new / (before + new) * torch.outer(shift, shift)
            means[number] += new / (before + new) * shift
            factors[number] = _to_half(factors[number].float() * math.sqrt(before / (before + new)))
            self.counts[number] += new
        assert self.covariance is not None
        self.covariance = symmetric_matrix(lower_triangle(self.covariance + apart / self.samples))
        whitening = self._fit_whitening()
        for number, added in rows.items():
            both = torch.cat([factors[number].float(), added.float()])
            found, values = find_directions(whitening.scale(both + whitening.mean).double(), self.directions)
            factor = torch.zeros(self.directions, h.shape[1])
            factor[: len(values)] = (found * values.sqrt()[:, None]).float() @ whitening.root.T
            factors[number] = _to_half(factor)
        self.means, self.factors = means, factors
        self._derive()

    def _fit_whitening(self) -> Whitening:
        assert self.covariance is not None
        assert self.origin is not None
        return Whitening.fit(self.covariance, self.samples, self.origin)

    def _derive(self) -> None:
        """Scale what is kept with the covariance as it is now."""
        assert self.means is not None
        assert self.factors is not None
        self.scaling = self._fit_whitening()
        mean, factors = self.scaling.scale(self.means), self.factors.float()
        scaled = (self.scaling.scale(factors.flatten(0, 1) + self.scaling.mean)).view(factors.shape)
        squares, rotation = torch.linalg.eigh((scaled @ scaled.mT).double())  # the smallest first
        variance = squares.flip(1).clamp_min(0.0)
        along = rotation.flip(2).mT @ scaled.double()
        direction = torch.where(variance[..., None] > 0, along / variance.sqrt()[..., None].clamp_min(1e-30), 0.0)
        nothing = torch.zeros(len(mean), 1)
        one = (nothing, mean[:, None], variance.float()[:, None], direction.float()[:, None], nothing)
        self.classes = ClassStatistics(*one)

    def keep(self, classes: Tensor) -> None:
        """Remove the statistics of all classes but these. The common covariance stays."""
        if self.means is not None and self.factors is not None:
            self.means, self.factors = self.means[classes], self.factors[classes]
            self.counts = None if self.counts is None else self.counts[classes]
            with one_thread():
                self._derive()

    def without_classes(self) -> "PooledDensities":
        return replace(self, classes=None, means=None, factors=None, counts=None)

    def leave_out(self, before: Densities, h: Tensor, y: Tensor, classes: range, rng: Generator) -> LeftOut:
        """Samples are left out of the common covariance too. A class's only sample stays in."""
        order, number = torch.randperm(len(h), generator=rng), torch.zeros(len(h), dtype=torch.long)
        for each in classes:  # the place of each sample among those of its class
            own = order[y[order] == each]
            number[own] = torch.arange(len(own)) if len(own) > 1 else -1
        fewest = min(int((y == each).sum()) for each in classes)
        parts = [torch.nonzero(number % FOLDS == fold)[:, 0] for fold in range(FOLDS)]
        parts = [part[number[part] >= 0] for part in (parts[:1] if fewest >= FOLDS * FEW else parts)]
        found = [self._leave_out_part(before, h, y, part, classes, rng) for part in parts if len(part)]
        return LeftOut.concat(found or [LeftOut(order[:0], y[:0], *[torch.zeros(0, classes.stop).double()] * 2)])

    def _leave_out_part(
        self, before: Densities, h: Tensor, y: Tensor, part: Tensor, classes: range, rng: Generator
    ) -> LeftOut:
        kept = torch.ones(len(h), dtype=torch.bool).index_fill_(0, part, False)
        without = before.snapshot()
        without.add(h[kept], y[kept], classes, rng)
        density = without.evaluate(h[part])
        return LeftOut(part, y[part], density, without.likeness(without.likeness_params(), h[part], density))

    @property
    def typical_share(self) -> float:
        return SHARE

    def typical_width(self) -> None:
        return None

    def likeness_params(self) -> dict[str, Tensor]:
        assert self.means is not None
        middle, mean = self.means.mean(0), self._fitted()[1].mean[:, 0]
        direction = functional.normalize(mean - mean.mean(0), dim=1)
        return self.scaling_params() | {"mean": middle, "class_direction": direction}

    def likeness(self, params: Params, h: Tensor, found: Tensor) -> Tensor:
        """The cosine of the angle between a sample and each class's mean, seen from the mean of all classes, where the
        common covariance is 1; in percent, less 100. The density says less of classes that are not known."""
        z = (h - params["mean"]) @ params["factor"]
        z = z / torch.linalg.vector_norm(z, dim=1, keepdim=True).clamp_min(1e-30)
        cosine: Tensor = (z @ params["class_direction"].T).double()
        return 100 * (cosine - 1)

    def tensors(self) -> dict[str, Tensor]:
        if self.covariance is None or self.origin is None or self.means is None or self.factors is None:
            return {}
        pooled = {"covariance": lower_triangle(self.covariance), "samples": torch.tensor(self.samples)}
        pooled |= {"origin": self.origin}
        kept = in_section("pooled", pooled) | in_section("classes", {"mean": self.means, "factor": self.factors})
        return kept | ({} if self.counts is None else {COUNTS: self.counts})

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        self.scaling = self.classes = self.covariance = self.origin = self.means = self.factors = None
        self.samples, self.counts = 0.0, tensors.get(COUNTS)
        if tensors:
            self.covariance = symmetric_matrix(tensors["pooled/covariance"])
            self.samples = float(tensors["pooled/samples"])
            self.means, self.factors = tensors["classes/mean"], tensors["classes/factor"]
            self.origin = tensors["pooled/origin"]
            with one_thread():
                self._derive()

    def compute_params(self) -> dict[str, Tensor]:
        with one_thread():
            return super().compute_params()

    def check(self, tensors: Mapping[str, Tensor], classes: int, dimensions: int) -> None:
        tensors = take_counts(tensors, classes)
        check_sections(tensors, "pooled", "classes")
        pooled, own = section(tensors, "pooled"), section(tensors, "classes")
        shapes = {"covariance": (triangle_size(dimensions),), "samples": (), "origin": (dimensions,)}
        check_shapes(pooled, shapes, WHAT)
        check_finite(pooled, {"covariance": -math.inf, "samples": 1.0, "origin": -math.inf}, WHAT)
        if "factor" not in own or own["factor"].dtype != torch.half:
            raise ValueError(f"{WHAT}: factor is missing or of the wrong type")
        own["factor"] = own["factor"].float()
        check_shapes(own, {"mean": (classes, dimensions), "factor": (classes, self.directions, dimensions)}, WHAT)
        check_finite(own, {"mean": -math.inf, "factor": -math.inf}, WHAT)
        largest = max(float(each.abs().max()) for each in (own["mean"], pooled["origin"]))
        if largest > MOST or float(pooled["covariance"].abs().max()) > MOST**2:
            raise ValueError(f"{WHAT}: values that are too large")
        try:
            replace(self).load(tensors)
        except RuntimeError as error:  # of a matrix that is not positive definite
            raise ValueError(f"{WHAT}: a covariance that is not possible") from error


def _mean(h: Tensor, weight: Tensor | None) -> Tensor:
    return h.mean(0) if weight is None else weight @ h / weight.sum()


def _to_half(factor: Tensor) -> Tensor:
    limit = torch.finfo(torch.half).max
    return factor.clamp(-limit, limit).half()
