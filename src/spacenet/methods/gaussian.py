"""A few Gaussians for each class and nothing else: what the summaries of spacenet-density know without its network."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from spacenet.config.ranges import Uniform
from spacenet.data.stream import Task
from spacenet.methods.base import MethodSettings
from spacenet.methods.density import discriminant
from spacenet.methods.density.densities import ClassMemory
from spacenet.methods.shared.class_statistics import SummarySettings, fixed_kind, new_densities
from spacenet.methods.shared.untrained import UntrainedMethod, UntrainedSettings
from spacenet.space.blueprint import CPU, Blueprint
from spacenet.space.pack import Pack
from spacenet.utils.seeding import generator


@dataclass(frozen=True)
class GaussianSettings(SummarySettings, UntrainedSettings):
    """What is kept of each class, and what it is described on."""


class Gaussian(UntrainedMethod):
    """The class whose density is largest wins; densities are the summaries of spacenet-density, and there is no
    network beside them. Keeps no samples."""

    name = "gaussian"
    reference = "van de Ven, Li, Tolias: Class-Incremental Learning with Generative Classifiers. CVPR Workshops, 2021"
    settings_from = "As in spacenet-density: searched on held-out training data."
    Settings = GaussianSettings
    settings: GaussianSettings
    search_space: ClassVar = {
        "method.components": Uniform(1, 4, integer=True),
        "method.directions": Uniform(4, 40, integer=True),
        "method.shrinkage": Uniform(0.2, 0.95),
    }

    def __init__(self, blueprint: Blueprint, settings: MethodSettings, seed: int, device: torch.device = CPU) -> None:
        super().__init__(blueprint, settings, seed, device)
        self.densities = new_densities(self.settings, whiten=False)

    def enter(self, h: Tensor, y: Tensor, task: Task) -> None:
        self.densities.add(h, y, task.classes, generator(self.seed, "summaries", task.index))

    def values(self) -> dict[str, Tensor]:
        return self.densities.values()

    def scores(self, values: Mapping[str, Tensor], h: Tensor) -> Tensor:
        return discriminant.scores(values, h)

    def class_memory(self, input_shape: tuple[int, ...]) -> ClassMemory | None:
        return self.densities.kept(fixed_kind(self.settings.representation, input_shape), 0)

    def truncate(self, directions: int) -> Pack:
        values = {name: value.to(self.device) for name, value in self.densities.truncate(directions).values().items()}
        return Pack(lambda values, x: self.scores(values, self._represent(x)), values)

    def network(self) -> dict[str, Tensor]:
        return self.densities.tensors()

    def load_model(self, tensors: Mapping[str, Tensor]) -> None:
        super().load_model(tensors)
        self.densities.load(tensors)
