"""The statistics of all classes seen so far. Those of a class never change."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from spacenet.methods.density import discriminant
from spacenet.methods.density.scaling import Scaling
from spacenet.methods.density.statistics import ClassStatistics, count_floats
from spacenet.utils.tensors import check_sections, in_section, section


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


class Densities:
    """Class statistics on features in a common scale."""

    def __init__(self, components: int, directions: int, shrinkage: float, *, whiten: bool) -> None:
        self.components, self.directions, self.shrinkage, self.whiten = components, directions, shrinkage, whiten
        self.scaling: Scaling | None = None
        self.classes: ClassStatistics | None = None
        """The statistics of all classes, stacked."""

    def __len__(self) -> int:
        return 0 if self.classes is None else len(self.classes.weight)

    def add(self, h: Tensor, y: Tensor, classes: range, rng: Generator) -> None:
        """Add a task's classes, given features (n, d) and labels y of its samples. The first task sets the scale."""
        if self.scaling is None:
            self.scaling = Scaling.fit(h, y, whiten=self.whiten)
        own = (self.scaling.scale(h[y == number]) for number in classes)
        new = [ClassStatistics.fit(z, self.components, self.directions, rng) for z in own]
        self.classes = ClassStatistics.concat(self.classes, new)

    def truncate(self, directions: int) -> "Densities":
        """The same with only the first directions of each Gaussian."""
        fewer = Densities(self.components, min(directions, self.directions), self.shrinkage, whiten=self.whiten)
        fewer.scaling = self.scaling
        fewer.classes = None if self.classes is None else self.classes.truncate(directions)
        return fewer

    def sample(self, each: int, rng: Generator) -> Tensor:
        """Draw features of `each` samples per class, one class after the other: (classes · each, d)."""
        assert self.scaling is not None, "there are no classes yet"
        assert self.classes is not None
        return self.scaling.unscale(torch.cat([one.sample(each, rng) for one in self.classes.split()]))

    def compute_params(self) -> dict[str, Tensor]:
        """What `discriminant.scores` computes with."""
        assert self.scaling is not None, "there are no classes yet"
        assert self.classes is not None
        return discriminant.compute_params(self.classes, self.scaling, self.shrinkage)

    def tensors(self) -> dict[str, Tensor]:
        """Everything that is kept, by name."""
        if self.scaling is None or self.classes is None:
            return {}
        return in_section("scaling", self.scaling.tensors()) | in_section("classes", self.classes.tensors())

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore what `tensors` returned."""
        self.scaling = Scaling(**section(tensors, "scaling")) if tensors else None
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
