"""The statistics of all classes seen so far, on features in a common scale; the log-densities of all classes with one
large matrix product; and their combination with the network's scores. The statistics of a class never change."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise

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
from spacenet.methods.density.moments import COUNTS, Moments, concat_counts, measure_parts, take_counts
from spacenet.methods.density.scaling import FeatureScaling, Scaling
from spacenet.methods.density.statistics import ClassStatistics, count_floats, find_clusters
from spacenet.methods.density.updating import merge_samples
from spacenet.space.blueprint import Params
from spacenet.utils.tensors import check_sections, in_section, section

MOST = 1e15
"""The magnitude of a feature in the common scale: squares of larger ones, added up, would not fit into 32 bits."""


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
    updatable: bool = False
    """Keep how many samples there were of each class, so that more can be added."""
    typical_of_all: bool = False
    """Compare a density with those of samples of all classes, so that it is as typical in one class as in another;
    otherwise with those of the class's own."""
    exact: bool = False
    """Keep the moments of each Gaussian, so that more samples of a class change its statistics as if all had come
    together."""
    counts: Tensor | None = None
    """The weight of all samples of each class, (classes,); None if a file does not say it."""
    moments: Moments | None = None
    """Of each Gaussian that has a weight, class by class."""

    def __len__(self) -> int:
        return 0 if self.classes is None else len(self.classes.weight)

    def add(self, h: Tensor, y: Tensor, classes: range, rng: Generator, weight: Tensor | None = None) -> None:
        """Add a task's classes, given features (n, d), labels y and weights of its samples. The first task sets the
        scale."""
        first, own = self.scaling is None, [y == number for number in classes]
        if first:
            self.scaling = Scaling.fit(h, y, whiten=self.whiten, weight=weight)
        scaled = [self._scale(h[rows]) for rows in own]
        given = [None if weight is None else weight[rows] for rows in own]
        used = [self.components] * len(own)
        if self.choose_components:
            used = choose_components(scaled, self.components, self._fit, self._score, rng)
        counts = torch.stack([(rows if weight is None else weight[rows]).sum().double() for rows in own])
        self.counts = concat_counts(self.counts, counts, len(self)) if self.updatable else None
        if self.exact and (self.moments is not None or not len(self)):
            clusters = [find_clusters(z, each, rng) for z, each in zip(scaled, used, strict=True)]
            found = [measure_parts(h[r], m, w) for r, m, w in zip(own, clusters, given, strict=True)]
            self.moments = Moments.concat([*([] if self.moments is None else [self.moments]), *found])
            if first:
                self.scaling = Scaling.from_moments(found, whiten=self.whiten)
            new = [self._describe(each) for each in found]
        else:
            new = [self._fit(z, each, rng, w) for z, each, w in zip(scaled, used, given, strict=True)]
        self.classes = ClassStatistics.concat(self.classes, new)

    def _scale(self, h: Tensor) -> Tensor:
        """Features in the common scale; `RunError` if they are too large to compute with."""
        z = self._fitted_scaling().scale(h)
        largest = float(z.abs().amax()) if len(z) else 0.0
        if not largest <= MOST:  # false for NaN too
            raise RunError(f"the statistics of a class cannot be computed: a feature has the magnitude {largest:.3g}")
        return z

    @property
    def can_update(self) -> bool:
        """Whether more samples of known classes can be added. Files of earlier versions do not say how many there
        were."""
        return self.counts is not None

    def update(self, h: Tensor, y: Tensor, first: int, weight: Tensor | None = None) -> None:
        """Add more samples of known classes: features (n, d), labels y and weights. `first` is how many classes the
        first task has, of whose moments, if they are kept, the scale follows; then the result is as if all samples had
        come together. Without moments it is an approximation, and the scale stays."""
        weight = torch.ones(len(h)) if weight is None else weight
        (_, classes), numbers = self._fitted(), y.unique().tolist()
        assert self.counts is not None, "it is not known how many samples there were"
        members = {n: self._join(n, self._scale(h[y == n])) for n in numbers}
        self.counts = self.counts.clone()
        if self.moments is None:
            each = classes.split()
            for n in numbers:
                rows = y == n
                z, own = self._scale(h[rows]), weight[rows]
                each[n] = merge_samples(each[n], float(self.counts[n]), z, own, members[n])
                self.counts[n] += own.sum()
            self.classes = ClassStatistics.concat(None, each)
            return
        starts = classes.weight.isfinite().sum(1).cumsum(0).tolist()
        for n in numbers:
            rows = y == n
            start = starts[n - 1] if n else 0
            for part in members[n].unique().tolist():
                own = members[n] == part
                self.moments = self.moments.add(start + part, Moments.measure(h[rows][own], weight[rows][own]))
            self.counts[n] += weight[rows].sum()
        every = self.split_moments()
        if any(n < first for n in numbers):
            self.scaling = Scaling.from_moments(every[:first], whiten=self.whiten)
            numbers = list(range(len(every)))
        each = classes.split()
        for n in numbers:
            each[n] = self._describe(every[n])
        self.classes = ClassStatistics.concat(None, each)

    def _join(self, number: int, z: Tensor) -> Tensor:
        """The Gaussian of a class that is densest at each of these samples, (n,)."""
        one = ClassStatistics.concat(None, [self._fitted()[1].split()[number]])
        return gaussian_scores(self._of_scaled(one).compute_params(), z)[:, 0].argmax(1)

    def split_moments(self) -> list[Moments]:
        """The moments of the Gaussians of each class."""
        assert self.moments is not None, "they are not kept"
        stops = [0, *self._fitted()[1].weight.isfinite().sum(1).cumsum(0).tolist()]
        return [self.moments[start:stop] for start, stop in pairwise(stops)]

    def _describe(self, moments: Moments) -> ClassStatistics:
        scaling = self._fitted_scaling()
        assert isinstance(scaling, Scaling)
        return moments.describe(self.components, self.directions, scaling.mean, scaling.factor)

    def _fit(self, z: Tensor, used: int, rng: Generator, weight: Tensor | None = None) -> ClassStatistics:
        return ClassStatistics.fit(z, self.components, self.directions, rng, used, weight)

    def _score(self, classes: ClassStatistics, z: Tensor) -> Tensor:
        """The log-density of each of these classes at features in the common scale."""
        return scores(self._of_scaled(classes).compute_params(), z)

    def _of_scaled(self, classes: ClassStatistics) -> "Densities":
        """Densities with these classes that take features in the common scale."""
        as_it_is = Scaling(torch.zeros(classes.mean.shape[-1]), torch.ones(()))
        return replace(self, scaling=as_it_is, classes=classes)

    def without_classes(self) -> "Densities":
        """The same scale and no classes."""
        return replace(self, classes=None, counts=None, moments=None)

    def keep(self, classes: Tensor) -> None:
        """Remove the statistics of all classes but these. The scale stays."""
        if self.moments is not None and self.classes is not None:
            every = self.split_moments()
            self.moments = Moments.concat([every[number] for number in classes.tolist()])
        if self.counts is not None:
            self.counts = self.counts[classes]
        if self.classes is not None:
            self.classes = ClassStatistics(**{name: each[classes] for name, each in self.classes.tensors().items()})

    def select(self, classes: Tensor) -> "Densities":
        """The same with these classes alone, each of them as often as it is named."""
        found = replace(self)
        found.keep(classes)
        return found

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
        return None if self.typical_of_all else math.sqrt(self._fitted()[1].mean.shape[-1] / 2)

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
        assert self.classes is not None, "there are no classes yet"
        return self._fitted_scaling(), self.classes

    def _fitted_scaling(self) -> FeatureScaling:
        assert self.scaling is not None, "there are no classes yet"
        return self.scaling

    def tensors(self) -> dict[str, Tensor]:
        if not isinstance(self.scaling, Scaling) or self.classes is None:
            return {}
        kept = in_section("scaling", self.scaling.tensors()) | in_section("classes", self.classes.tensors())
        kept |= {} if self.counts is None else {COUNTS: self.counts}
        return kept | ({} if self.moments is None else in_section("moments", self.moments.tensors()))

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        self.scaling = Scaling.load(section(tensors, "scaling")) if tensors else None
        self.classes = ClassStatistics(**section(tensors, "classes")) if tensors else None
        self.counts, moments = tensors.get(COUNTS), section(tensors, "moments")
        self.moments = Moments(**moments) if moments else None

    def check(self, tensors: Mapping[str, Tensor], classes: int, dimensions: int) -> None:
        """Raise `ValueError` if `tensors` cannot have returned this for this number of classes and features."""
        tensors = take_counts(tensors, classes)
        check_sections(tensors, "scaling", "classes", "moments")
        Scaling.check(section(tensors, "scaling"), dimensions, whiten=self.whiten)
        own = section(tensors, "classes")
        ClassStatistics.check(own, classes, self.components, self.directions, dimensions)
        if moments := section(tensors, "moments"):
            Moments.check(moments, int(own["weight"].isfinite().sum()), dimensions)

    def class_memory(self, representation: str, extra_bytes: int) -> ClassMemory | None:
        """What is kept of each class; `extra_bytes` are added to the size of the statistics and their scaling."""
        if self.classes is None:
            return None
        dimensions, size = self.classes.mean.shape[-1], sum(tensor.nbytes for tensor in self.tensors().values())
        floats = count_floats(self.components, self.directions, dimensions)
        if self.moments is not None:  # of 64 bits
            floats += 2 * sum(tensor.numel() for tensor in self.moments.tensors().values()) // len(self)
        return ClassMemory(representation, dimensions, self.components, self.directions, floats, size + extra_bytes)


def scores(params: Params, h: Tensor) -> Tensor:
    """The log-density of each class at features (n, d), up to a constant that all classes share: (n, classes)."""
    return log_sum(gaussian_scores(params, h))[..., 0]


def gaussian_scores(params: Params, h: Tensor) -> Tensor:
    """The same for each Gaussian: (n, classes, Gaussians)."""
    bias = params["bias"]  # (classes, Gaussians, 1 + directions)
    found = torch.addmm(bias.flatten(), h.to(bias.dtype), params["weight"].T).view(-1, *bias.shape)
    return found[..., 0] + found[..., 1:].square().sum(-1)


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


def log_sum(logarithms: Tensor) -> Tensor:
    """torch.logsumexp over the last dimension, with keepdim. The first element must not be minus infinity.
    Uses a few operations that other runtimes compute without overflow too."""
    return (logarithms - torch.log_softmax(logarithms, -1))[..., :1]
