"""Streaming LDA: a mean for each class, and one covariance that all classes share and that grows with them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from spacenet.config.ranges import Uniform
from spacenet.data.stream import Task
from spacenet.errors import SettingsError
from spacenet.methods.base import MethodSettings
from spacenet.methods.shared.untrained import UntrainedMethod, UntrainedSettings
from spacenet.space.blueprint import CPU, Blueprint


@dataclass(frozen=True)
class SLDASettings(UntrainedSettings):
    """What classes are described on, and how far their covariance is trusted."""

    shrinkage: float = 1e-4
    """How far the covariance is drawn towards the identity: near 0 not at all, 1 all the way."""

    def __post_init__(self) -> None:
        if not 0.0 < self.shrinkage <= 1.0:
            raise SettingsError(f"shrinkage: {self.shrinkage} is out of range (need more than 0, at most 1)")


class SLDA(UntrainedMethod):
    """Linear discriminants from the classes' means and their common covariance, as if all data had been there at once.

    Published on features of a network that was trained beforehand on other data; here there is none. Keeps no samples.
    """

    name = "slda"
    reference = (
        "Hayes, Kanan: Lifelong Machine Learning with Deep Streaming Linear Discriminant Analysis. CVPR Workshops, 2020"
    )
    settings_from = "As published; on held-out training data others were no better, on edges as on inputs."
    Settings = SLDASettings
    settings: SLDASettings
    search_space: ClassVar = {"method.shrinkage": Uniform(1e-5, 0.9, log=True)}

    def __init__(self, blueprint: Blueprint, settings: MethodSettings, seed: int, device: torch.device = CPU) -> None:
        super().__init__(blueprint, settings, seed, device)
        self.samples = 0
        self.means = torch.zeros(0)
        """(classes, d)"""
        self.covariance = torch.zeros(0)
        """(d, d), around each sample's class's mean, over all samples seen."""

    def enter(self, h: Tensor, y: Tensor, task: Task) -> None:
        means = torch.stack([h[y == number].mean(0) for number in task.classes])
        around = h - means[y - task.classes.start]
        covariance = around.T @ around / len(h)
        before, self.samples = self.samples, self.samples + len(h)
        self.means = torch.cat([self.means, means]) if before else means
        self.covariance = torch.lerp(self.covariance, covariance, len(h) / self.samples) if before else covariance

    def values(self) -> dict[str, Tensor]:
        """Discriminants around the middle of all classes: what these have in common cannot round away the rest."""
        middle = self.means.double().mean(0)
        means, part = self.means.double() - middle, self.settings.shrinkage
        mixed = (1 - part) * self.covariance.double() + part * torch.eye(len(middle), dtype=torch.double)
        weight = torch.linalg.solve(mixed, means.T).T
        constant = -(weight * means).sum(1) / 2
        return {"middle": middle.float(), "weight": weight.float(), "constant": constant.float()}

    def scores(self, values: Mapping[str, Tensor], h: Tensor) -> Tensor:
        return (h - values["middle"]) @ values["weight"].T + values["constant"]

    def network(self) -> dict[str, Tensor]:
        return {"means": self.means, "covariance": self.covariance, "samples": torch.tensor(self.samples)}

    def load_model(self, tensors: Mapping[str, Tensor]) -> None:
        super().load_model(tensors)
        self.samples = int(tensors["samples"])
        self.means, self.covariance = tensors["means"].clone(), tensors["covariance"].clone()
