"""The statistics of all classes seen so far, on features in a common scale; the log-densities of all classes with one
large matrix product; and their combination with the network's scores. The statistics of a class never change."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import torch
from torch import Generator, Tensor

from spacenet.errors import RunError
from spacenet.methods.density.components import choose_components
from spacenet.methods.density.left_out import (
    FEW,
    FEW_FOLDS,
    FOLDS,
    LEFT_OUT,
    MANY,
    MOST_LEFT_OUT,
    MOST_OTHERS,
    LeftOut,
)
from spacenet.methods.density.statistics import ClassStatistics, count_floats
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

SCALE = "the features' scale"
MOST = 1e15
"""The magnitude of a feature in the common scale: squares of larger ones, added up, would not fit into 32 bits."""
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
        factor = (vectors / values.sqrt() @ vectors.T).float()
        return cls(
            mean, symmetric_matrix(lower_triangle(factor))
        )  # symmetric to the last bit, to be kept as a triangle

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


@dataclass(frozen=True)
class ClassMemory:
    """What is kept of each class besides the network."""

    representation: str
    """What the statistics are computed on."""
    dimensions: int
    gaussians: int
    directions: int
    """For each Gaussian."""
    floats: int
    """For each class."""
    bytes: int
    """For all classes, with the scaling and whatever else the representation needs."""


@dataclass
class Densities:
    """Class statistics on features in a common scale."""

    components: int
    directions: int
    shrinkage: float
    whiten: bool = field(kw_only=True)
    scaling: FeatureScaling | None = None
    classes: ClassStatistics | None = None
    """The statistics of all classes, stacked."""
    dtype: torch.dtype = torch.float32
    """What densities are computed in. With little shrinkage they are so large that 32 bits leave few digits."""
    choose_components: bool = False
    """Give each class as many Gaussians, up to `components`, as are best for samples that are left out."""

    def __len__(self) -> int:
        return 0 if self.classes is None else len(self.classes.weight)

    def add(self, h: Tensor, y: Tensor, classes: range, rng: Generator) -> None:
        """Add a task's classes, given features (n, d) and labels y of its samples. The first task sets the scale."""
        if self.scaling is None:
            self.scaling = Scaling.fit(h, y, whiten=self.whiten)
        own = [self.scaling.scale(h[y == number]) for number in classes]
        largest = max(float(z.abs().amax()) for z in own)
        if not largest <= MOST:  # false for NaN too
            raise RunError(f"the statistics of a class cannot be computed: a feature has the magnitude {largest:.3g}")
        used = [self.components] * len(own)
        if self.choose_components:
            used = choose_components(own, self.components, self._fit, self._score, rng)
        new = [self._fit(z, each, rng) for z, each in zip(own, used, strict=True)]
        self.classes = ClassStatistics.concat(self.classes, new)

    def _fit(self, z: Tensor, used: int, rng: Generator) -> ClassStatistics:
        return ClassStatistics.fit(z, self.components, self.directions, rng, used)

    def _score(self, classes: ClassStatistics, z: Tensor) -> Tensor:
        """The log-density of each of these classes at features in the common scale."""
        as_it_is = Scaling(torch.zeros(z.shape[1]), torch.ones(()))
        return scores(replace(self, scaling=as_it_is, classes=classes).compute_params(), z)

    def without_classes(self) -> "Densities":
        """The same scale and no classes."""
        return replace(self, classes=None)

    def keep(self, classes: Tensor) -> None:
        """Remove the statistics of all classes but these. The scale stays."""
        if self.classes is not None:
            self.classes = ClassStatistics(**{name: each[classes] for name, each in self.classes.tensors().items()})

    def truncate(self, directions: int) -> "Densities":
        """The same with only the first directions of each Gaussian."""
        classes = None if self.classes is None else self.classes.truncate(directions)
        return replace(self, directions=min(directions, self.directions), classes=classes)

    def evaluate(self, h: Tensor, params: Params | None = None) -> Tensor:
        """The log-density of each class at features (n, d), in 64 bits: (n, classes). Minus infinity where numbers are
        too large to compute with. `params` is what `compute_params` returned, where that is known already."""
        params = {**(params or self.compute_params()), **self.scaling_params()}
        return complete_scores(params, scores(params, h), h, self.shrinkage)

    def scaling_params(self) -> dict[str, Tensor]:
        """What `complete_scores` computes with."""
        scaling = self._fitted()[0]
        return {"mean": scaling.mean, "factor": scaling.factor}

    @property
    def typical_share(self) -> float:
        """How much of what is typical of a class is taken from all classes."""
        return 0.0

    def typical_width(self) -> float | None:
        """The least spread of likeness where samples are few: as that of Gaussians. None where it means the same for
        all classes."""
        return math.sqrt(self._fitted()[1].mean.shape[-1] / 2)

    def likeness_params(self) -> dict[str, Tensor]:
        """What `likeness` computes with."""
        return self.scaling_params()

    def likeness(self, params: Params, h: Tensor, found: Tensor) -> Tensor:
        """How like each class a sample is, in 64 bits: (n, classes), from features (n, d) and what `scores` returned
        for them. What is typical of a class is measured in it. Here the log-density."""
        return complete_scores(params, found, h, self.shrinkage)

    def snapshot(self) -> "Densities":
        """What `leave_out` needs to know of the state before a task's classes are added."""
        return replace(self)

    def leave_out(self, before: "Densities", h: Tensor, y: Tensor, classes: range, rng: Generator) -> LeftOut:
        """What the statistics of a task's classes, which have been added to `before`, say of samples of them that they
        were computed without: of features (n, d) with labels y."""
        params, most = self.compute_params(), max(FEW, min(MOST_LEFT_OUT, MANY // (len(classes) * classes.stop)))
        parts = []
        for number in classes:
            own = torch.nonzero(y == number)[:, 0]
            rows, found = self._leave_out_of_class(params, h[own], number, most, rng)
            parts.append(LeftOut(own[rows], torch.full((len(rows),), number), found, found))
        return LeftOut.concat(parts)

    def _leave_out_of_class(
        self, params: Params, h: Tensor, number: int, most: int, rng: Generator
    ) -> tuple[Tensor, Tensor]:
        """Samples of one class, and the log-density of each class at them, (m, classes); its own is that by statistics
        without these samples. Of a single sample it is that of its own, less what a sample loses on average. `params`
        is what `compute_params` returned, `most` how many samples are left out at a time."""
        scaling, classes = self._fitted()
        z, order = scaling.scale(h), torch.randperm(len(h), generator=rng)
        folds = min(FOLDS if len(h) >= FEW_FOLDS * FEW else FEW_FOLDS, len(h))
        if folds < 2:
            found = self.evaluate(h, params)
            found[:, number] -= z.shape[1] / 2
            return order, found
        used = int(classes.weight[number].isfinite().sum())
        parts = [order[fold::folds] for fold in range(folds)]
        parts = [part[:most] for part in (parts[:1] if len(parts[0]) >= LEFT_OUT else parts)]
        own = []
        for part in parts:
            kept = torch.ones(len(h), dtype=torch.bool).index_fill_(0, part, False)
            others = order[kept[order]][:MOST_OTHERS]
            rest = ClassStatistics.concat(None, [self._fit(z[others], used, rng)])
            own.append((self._score(rest, z[part]).double() + _shared_density(z[part], self.shrinkage))[:, 0])
        rows = torch.cat(parts)
        found = self.evaluate(h[rows], params)
        found[:, number] = torch.cat(own)
        return rows, found

    def sample(self, each: int, rng: Generator) -> Tensor:
        """Draw features of `each` samples per class, one class after the other: (classes · each, d)."""
        scaling, classes = self._fitted()
        return scaling.unscale(torch.cat([one.sample(each, rng) for one in classes.split()]))

    def compute_params(self) -> dict[str, Tensor]:
        """What `scores` computes with.

        Each covariance C is shrunk to (1 - s) C + s 1. Along a direction of C, its inverse differs from 1/s by
        1/s - 1/((1 - s) · variance + s). Directions are scaled to the root of half of that. Then half the squared
        distance of a sample z from the mean m is |z - m|²/2s minus the squared projections of z - m on the directions.
        |z|²/2s is the same for all Gaussians and left out. The rest is linear in z except for the squares, and z is
        linear in the features.
        """
        (scaling, classes), shrinkage = self._fitted(), self.shrinkage
        mixed = (1 - shrinkage) * classes.variance.double() + shrinkage
        mean = classes.mean.double() / shrinkage
        direction = classes.direction.double() * (1 / shrinkage - 1 / mixed).div(2).sqrt()[..., None]
        constant = classes.weight - (mixed / shrinkage).log().sum(-1) / 2 - (mean * classes.mean).sum(-1) / 2
        seen = (direction @ classes.mean.double()[..., None])[..., 0]
        weight = scaling.fold_into(torch.cat([mean[..., None, :], direction], -2))
        bias = torch.cat([constant[..., None], -seen], -1) - weight @ scaling.mean.double()
        return {"weight": weight.flatten(0, 2).to(self.dtype), "bias": bias.to(self.dtype)}

    def _fitted(self) -> tuple[FeatureScaling, ClassStatistics]:
        assert self.scaling is not None, "there are no classes yet"
        assert self.classes is not None
        return self.scaling, self.classes

    def tensors(self) -> dict[str, Tensor]:
        if not isinstance(self.scaling, Scaling) or self.classes is None:
            return {}
        return in_section("scaling", self.scaling.tensors()) | in_section("classes", self.classes.tensors())

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        self.scaling = Scaling.load(section(tensors, "scaling")) if tensors else None
        self.classes = ClassStatistics(**section(tensors, "classes")) if tensors else None

    def check(self, tensors: Mapping[str, Tensor], classes: int, dimensions: int) -> None:
        """Raise `ValueError` if `tensors` cannot have returned this for this number of classes and features."""
        check_sections(tensors, "scaling", "classes")
        Scaling.check(section(tensors, "scaling"), dimensions, whiten=self.whiten)
        ClassStatistics.check(section(tensors, "classes"), classes, self.components, self.directions, dimensions)

    def class_memory(self, representation: str, extra_bytes: int) -> ClassMemory | None:
        """What is kept of each class; `extra_bytes` are added to the size of the statistics and their scaling."""
        if self.classes is None:
            return None
        dimensions, size = self.classes.mean.shape[-1], sum(tensor.nbytes for tensor in self.tensors().values())
        floats = count_floats(self.components, self.directions, dimensions)
        return ClassMemory(representation, dimensions, self.components, self.directions, floats, size + extra_bytes)


def scores(params: Params, h: Tensor) -> Tensor:
    """The log-density of each class at features (n, d), up to a constant that all classes share: (n, classes)."""
    bias = params["bias"]  # (classes, Gaussians, 1 + directions)
    found = torch.addmm(bias.flatten(), h.to(bias.dtype), params["weight"].T).view(-1, *bias.shape)
    return log_sum(found[..., 0] + found[..., 1:].square().sum(-1))[..., 0]


def complete_scores(params: Params, found: Tensor, h: Tensor, shrinkage: float) -> Tensor:
    """The log-density of each class at features (n, d), given what `scores` returned for them, in 64 bits:
    (n, classes). Minus infinity where numbers are too large to compute with."""
    centered, factor = h - params["mean"], params["factor"]
    z = centered @ factor if factor.dim() else centered * factor
    found = found.double() + _shared_density(z, shrinkage)
    return found.where(found.isfinite(), -math.inf)


def _shared_density(z: Tensor, shrinkage: float) -> Tensor:
    """What `scores` leaves out of the log-density of each class at features in the common scale, (n, 1)."""
    volume = z.shape[1] / 2 * math.log(2 * math.pi * shrinkage)
    return -(z.double().square().sum(1, keepdim=True) / (2 * shrinkage) + volume)


def combine(
    fit: Tensor,
    network: Tensor | None,
    tasks: Sequence[range],
    sharpness: float,
    weight: float,
    *,
    densest: bool = False,
) -> Tensor:
    """Log-probabilities, (n, classes), up to a constant per sample: densities decide between tasks, both within a task.

    fit        log-densities of the classes at the inputs
    network    the network's scores; None if they are not used
    tasks      the classes of each task
               (a task that has none takes no part)
    sharpness  factor of the log-densities, because features are less independent than the Gaussians assume
    weight     factor of the network's scores within a task
    densest    the task of the densest class wins, however sure the network is within it; otherwise the most probable
               class, given its task, wins over all tasks
    """
    fit = fit.double() * sharpness  # in 64 bits, so that probabilities near 1 keep their digits
    if network is None:
        return fit
    tasks = [classes for classes in tasks if classes]
    join = _rank_tasks if densest else _combine_tasks
    if len({len(classes) for classes in tasks}) == 1:  # all at once, which is much faster
        here, scores = (each.view(-1, len(tasks), len(tasks[0])) for each in (fit, network))
        return join(here, scores, weight).flatten(1)
    columns = [slice(classes.start, classes.stop) for classes in tasks]
    return torch.cat([join(fit[:, own], network[:, own], weight) for own in columns], 1)


def _combine_tasks(fit: Tensor, network: Tensor, weight: float) -> Tensor:
    """The task's log-probability plus that of each class within it; classes are the last dimension."""
    return log_sum(fit) + torch.log_softmax(torch.add(fit, network, alpha=weight), -1)


def _rank_tasks(fit: Tensor, network: Tensor, weight: float) -> Tensor:
    """The best class of a task has the task's largest density, the others as much less as both together say."""
    both = torch.add(fit, network, alpha=weight)
    return fit.amax(-1, keepdim=True) + (both - both.amax(-1, keepdim=True))


def log_sum(logarithms: Tensor) -> Tensor:
    """torch.logsumexp over the last dimension, with keepdim. The first element must not be minus infinity.
    Uses a few operations that other runtimes compute without overflow too."""
    return (logarithms - torch.log_softmax(logarithms, -1))[..., :1]
