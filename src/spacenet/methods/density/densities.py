"""The statistics of all classes seen so far, on features in a common scale; the log-densities of all classes with one
large matrix product; and their combination with the network's scores. The statistics of a class never change."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import torch
from torch import Generator, Tensor

from spacenet.errors import RunError
from spacenet.methods.density.components import choose_components
from spacenet.methods.density.moments import COUNTS, Moments, concat_counts, measure_parts, take_counts
from spacenet.methods.density.scaling import FeatureScaling, Scaling
from spacenet.methods.density.statistics import ClassStatistics, count_floats, find_clusters
from spacenet.methods.density.updating import merge_samples
from spacenet.space.blueprint import Params
from spacenet.utils.tensors import check_sections, in_section, section

MOST = 1e15
"""The magnitude of a feature in the common scale: squares of larger ones, added up, would not fit into 32 bits."""
FOLDS, LEFT_OUT, MOST_OTHERS = 4, 100, 2000
"""A quarter of a class is left out of statistics to see what is usual for it; where that would be fewer samples than
the second, each quarter in turn. Of very many others, so many are enough for these statistics."""


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

    def truncate(self, directions: int) -> "Densities":
        """The same with only the first directions of each Gaussian."""
        classes = None if self.classes is None else self.classes.truncate(directions)
        return replace(self, directions=min(directions, self.directions), classes=classes)

    def evaluate(self, h: Tensor, params: Params | None = None) -> Tensor:
        """The log-density of each class at features (n, d), in 64 bits: (n, classes). Minus infinity where numbers are
        too large to compute with. `params` is what `compute_params` returned, where that is known already."""
        return log_densities({**(params or self.compute_params()), **self.scaling_params()}, h, self.shrinkage)

    def scaling_params(self) -> dict[str, Tensor]:
        """What `log_densities` computes with besides what `compute_params` returns."""
        scaling = self._fitted()[0]
        return {"mean": scaling.mean, "factor": scaling.factor}

    def left_out(self, params: Params, h: Tensor, number: int, most: int, rng: Generator) -> Tensor:
        """The log-density of each class at samples of one class, (m, classes); its own is that by statistics without
        these samples. Of a single sample it is that of its own, less what a sample loses on average. `params` is what
        `compute_params` returned, `most` how many samples are left out at a time."""
        scaling, classes = self._fitted()
        z, order = scaling.scale(h), torch.randperm(len(h), generator=rng)
        folds = min(FOLDS, len(h))
        if folds < 2:
            found = self.evaluate(h, params)
            found[:, number] -= z.shape[1] / 2
            return found
        used = int(classes.weight[number].isfinite().sum())
        parts = [order[fold::folds] for fold in range(folds)]
        parts = [part[:most] for part in (parts[:1] if len(parts[0]) >= LEFT_OUT else parts)]
        own = []
        for part in parts:
            kept = torch.ones(len(h), dtype=torch.bool).index_fill_(0, part, False)
            others = order[kept[order]][:MOST_OTHERS]
            rest = ClassStatistics.concat(None, [self._fit(z[others], used, rng)])
            own.append((self._score(rest, z[part]).double() + _shared_density(z[part], self.shrinkage))[:, 0])
        found = self.evaluate(h[torch.cat(parts)], params)
        found[:, number] = torch.cat(own)
        return found

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


def log_densities(params: Params, h: Tensor, shrinkage: float) -> Tensor:
    """The log-density of each class at features (n, d), in 64 bits: (n, classes). Minus infinity where numbers are too
    large to compute with."""
    centered, factor = h - params["mean"], params["factor"]
    z = centered @ factor if factor.dim() else centered * factor
    found = scores(params, h).double() + _shared_density(z, shrinkage)
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
