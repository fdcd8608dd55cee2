"""Methods that keep statistics of each class: their settings, and the representations that they are computed on."""

import copy
import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, ClassVar, Literal

import torch
from annotated_types import Ge, Gt, Le
from torch import Tensor, nn
from torch.nn import functional as F

from spacenet.errors import SettingsError
from spacenet.methods.base import Batch, LayerUsage, Method, MethodSettings, Samples, Stream, Task, Uniform, map_batches
from spacenet.methods.density.densities import Densities
from spacenet.methods.density.edges import extract_edges, supports_edges
from spacenet.methods.density.pooled import PooledDensities
from spacenet.methods.shared.places import take_places
from spacenet.space.blueprint import Blueprint, Link, Params
from spacenet.space.pack import Pack

Representation = Literal["auto", "inputs", "edges", "features"]
SEED = "summaries"
"""The purpose of the random numbers. Part of the seed: another word would change the results."""
COMPONENTS = 2
SHRINKAGE, TABLE_SHRINKAGE, MAX_COLUMNS = 0.7, 0.1, 300
"""The default, that of tables, and how many columns these may have: `python -m benchmarks.own_data` shows why."""
DIRECTIONS = 19
POOLED_SHRINKAGE, POOLED_DIRECTIONS = 0.9, 10
"""The defaults with a pooled covariance, chosen on held-out images of CIFAR-100."""
MAX_BYTES = 1024**3
"""Of a task's samples that statistics are computed of."""
LAYERS, GRID = 2, 2
"""Features are the inputs of this many last links; feature maps are averaged over a grid of GRID × GRID cells."""


@dataclass(frozen=True)
class ClassStatisticsSettings(MethodSettings):
    """What is kept of each class."""

    components: Annotated[int, Ge(1), Le(1000), Uniform(1, 4, integer=True)] | None = None
    """Gaussians per class. Default: 2; 1 with a pooled covariance; where statistics are computed on the columns of a
    table 1 or 2, whichever gives held-out samples of the class the larger likelihood, or 1 for all classes of a task if
    that tells them apart better."""
    directions: Annotated[int, Ge(1), Le(10_000), Uniform(4, 40, integer=True)] | None = None
    """Directions per Gaussian in which its variance is kept; in all others it is that of the first task's scale, or the
    pooled one. Default: 19, with a pooled covariance 10."""
    shrinkage: Annotated[float, Gt(0), Le(1), Uniform(0.02, 0.95)] | None = None
    """How far each covariance is shrunk towards the identity: near 0 not at all, 1 completely. Default: 0.1 where
    statistics are computed on the columns of a table, up to 300, 0.9 with a pooled covariance, otherwise 0.7."""
    pooled_covariance: bool | None = None
    """Estimate the covariance that all classes have in common from all tasks, as linear discriminant analysis does, and
    what is special to a class relative to it. Results then hardly depend on how classes are cut into tasks. Default:
    for features of an encoder; otherwise the first task sets the scale."""

    def validate(self) -> None:
        super().validate()
        if self.pooled_covariance and (self.components or 1) > 1:
            raise SettingsError("a class has one Gaussian where the covariance is pooled", setting="components")

    def build_densities(self, *, whiten: bool) -> Densities:
        """Class densities with these settings, still empty."""
        if self.pooled_covariance:
            shrinkage = self.shrinkage or POOLED_SHRINKAGE
            return PooledDensities(1, self.directions or POOLED_DIRECTIONS, shrinkage, whiten=True)
        components, shrinkage = self.components or COMPONENTS, self.shrinkage or SHRINKAGE
        return Densities(components, self.directions or DIRECTIONS, shrinkage, whiten=whiten)

    def suit(self, densities: Densities, shape: tuple[int, ...], kind: Representation) -> Densities:
        """The densities as they suit this representation of samples of this shape."""
        if self.pooled_covariance:
            return densities
        narrow, choose = is_narrow(shape, kind), self.components is None and is_table(shape, kind)
        shrinkage = self.shrinkage or (TABLE_SHRINKAGE if narrow else SHRINKAGE)
        dtype = torch.float64 if narrow else torch.float32
        return replace(densities, shrinkage=shrinkage, dtype=dtype, choose_components=choose, typical_of_all=narrow)


def described_rows(samples: Samples, classes: range) -> Tensor | slice:
    """Which of a task's samples statistics are computed of: all, or of very large data some of each class."""
    step = math.ceil(samples.x.nbytes / MAX_BYTES)
    if step < 2:
        return slice(None)
    return torch.cat([torch.nonzero(samples.y == number)[::step, 0] for number in classes])


def is_table(shape: tuple[int, ...], kind: Representation) -> bool:
    """Whether statistics are computed on the columns of a table."""
    return len(shape) == 1 and kind == "inputs"


def is_narrow(shape: tuple[int, ...], kind: Representation) -> bool:
    """Whether statistics are computed on the columns of a table, and these are not too many."""
    return is_table(shape, kind) and shape[0] <= MAX_COLUMNS


def resolve_representation(kind: Representation, shape: tuple[int, ...]) -> Representation:
    """The representation of samples of this shape, without a network: `auto` is edges for images, otherwise inputs."""
    if kind == "auto":
        return "edges" if supports_edges(shape) else "inputs"
    if kind == "edges" and not supports_edges(shape):
        message = f"samples of the shape {shape} are not images with edges; try inputs"
        raise SettingsError(message, setting="representation")
    return kind


FIXED: dict[str, Callable[[Tensor], Tensor]] = {"inputs": lambda x: x.flatten(1), "edges": extract_edges}
"""Representations that are not learned."""


def extract_features(blueprint: Blueprint, params: Params, x: Tensor, links: Sequence[Link] = ()) -> Tensor:
    """The inputs of these links, by default the network's last, concatenated: (n, d)."""
    chosen = [link.name for link in links or blueprint.links[-LAYERS:]]
    entering: dict[str, Tensor] = {}

    def hook(link: str, h: Tensor) -> None:
        if link in chosen:
            entering[link] = pool_roots(h, GRID)

    blueprint.forward(params, x, hook)
    return torch.cat([entering[name] for name in chosen], 1)


def pool_roots(h: Tensor, grid: int) -> Tensor:
    """Features of one layer: feature maps averaged on a coarse grid, and square roots, which are closer to Gaussian."""
    if h.dim() == 4:
        h = F.adaptive_avg_pool2d(h, grid)
    return h.flatten(1).clamp_min(0.0).sqrt()


@dataclass(frozen=True)
class UntrainedSettings(MethodSettings):
    """What classes are described on."""

    representation: Literal["auto", "inputs", "edges"] = "auto"
    """What classes are described on: the inputs, or the edges of images; auto is edges where inputs are images."""


class UntrainedMethod(Method):
    """Needs no epochs: a class is described once, when its task ends. The network is not used."""

    strategy = "Statistical"
    settings: UntrainedSettings
    training_space: ClassVar = {}

    @abstractmethod
    def add_classes(self, h: Tensor, y: Tensor, task: Task) -> None:
        """Add the task's classes, given the representation (n, d) and the classes y of its samples."""

    @abstractmethod
    def compute_params(self) -> dict[str, Tensor]:
        """What `scores` computes with."""

    @abstractmethod
    def scores(self, params: Params, h: Tensor) -> Tensor:
        """One score per class seen so far, from the representation (n, d)."""

    def check(self, stream: Stream) -> list[str]:
        self.check_inputs(stream.input_shape)
        return super().check(stream)

    @abstractmethod
    def keep_classes(self, kept: Tensor) -> None:
        """Remove what is kept of all classes but these, given by number."""

    def remove_classes(self, outputs: Tensor) -> None:
        rest = torch.ones(self.classes[-1].stop, dtype=torch.bool).index_fill_(0, outputs, value=False)
        places = self.places.remove(~rest, self.classes, {})
        self.keep_classes(rest.nonzero().flatten())
        self.places = places
        self.set_progress([int(rest[own.start : own.stop].sum()) for own in self.classes], self.tasks_learned)
        self.invalidate()

    def check_state(self, state: Mapping[str, Tensor], input_shape: tuple[int, ...]) -> None:
        super().check_state(take_places(state, self.classes, {}), input_shape)

    def count_features(self, input_shape: tuple[int, ...]) -> int:
        """How many features describe a sample of this shape."""
        return self.represent(torch.zeros(0, *input_shape)).shape[1]

    def check_inputs(self, shape: tuple[int, ...]) -> None:
        resolve_representation(self.settings.representation, shape)

    def epochs(self, planned: int) -> int:
        return 0

    def named_parameters(self) -> dict[str, nn.Parameter]:
        return {}

    def forward(self, batch: Batch) -> Tensor:
        return self.predict(batch.x)

    def end_task(self, task: Task) -> None:
        rows = described_rows(task.train, task.classes)
        self.add_classes(map_batches(self.represent, task.train.x[rows], self.device), task.train.y[rows].cpu(), task)
        super().end_task(task)

    @cached_property
    def predictor(self) -> Pack:
        """Everything that is needed to predict."""
        if not self.places:
            return self.predict_with(self.compute_params())
        placed = copy.deepcopy(self)  # what is kept of classes, which is small beside the samples of one batch
        placed.keep_classes(self.places.fill)
        return self.places.drop(self.predict_with(placed.compute_params()), self.device)

    def predict_with(self, params: Params) -> Pack:
        on_device = {name: tensor.to(self.device) for name, tensor in params.items()}
        return Pack(lambda params, x: self.scores(params, self.represent(x)), on_device)

    def bytes_to_predict(self) -> int:
        return sum(value.nbytes for value in self.predictor.params.values())

    def predict(self, x: Tensor) -> Tensor:
        return self.predictor(x)

    def represent(self, x: Tensor) -> Tensor:
        """The representation of samples that classes are described on, (n, d)."""
        return FIXED[resolve_representation(self.settings.representation, tuple(x.shape[1:]))](x)

    def layer_usage(self) -> list[LayerUsage]:
        return []
