"""Synaptic Intelligence: weights that brought the loss down most stay near where they were."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from spacenet.config.ranges import Uniform
from spacenet.data.stream import Samples, Task
from spacenet.errors import SettingsError
from spacenet.methods.base import ANY, MethodSettings
from spacenet.methods.shared.path_integral import PathIntegral
from spacenet.methods.shared.quadratic_penalty import Penalty, QuadraticPenalty, trained
from spacenet.space.blueprint import CPU, Blueprint
from spacenet.utils.optimizers import Optimizer


@dataclass(frozen=True)
class SISettings(MethodSettings):
    """How firmly the old weights are held."""

    strength: float = 1.0
    """What the penalty is multiplied by (the paper's c)."""
    damping: float = 0.1
    """Added to the squared way of a weight, so that one that stood still gets no boundless importance (ξ)."""

    def __post_init__(self) -> None:
        if self.strength < 0:
            raise SettingsError(f"strength: {self.strength} is negative")
        if self.damping <= 0:
            raise SettingsError(f"damping: {self.damping} is too small (need more than 0)")


class SI(QuadraticPenalty):
    """c Σ Ω (θ − θ̃)² is added to the loss (eq. 4); Ω is measured along the way while a task trains.

    About 20 % on five tasks is right: what is held are weights, but no old sample is there to keep the scores of new
    classes below those of old ones, so only the last task's classes are ever named.
    """

    name = "si"
    strategy = "Regularization"
    reference = "Zenke, Poole, Ganguli: Continual learning through synaptic intelligence. ICML, 2017"
    settings_from = "Hsu et al. 2018 on Split MNIST and Split Fashion-MNIST; elsewhere van de Ven et al. 2021."
    Settings = SISettings
    settings: SISettings
    # As in Hsu et al. 2018; elsewhere as in van de Ven et al. 2021.
    presets: ClassVar = {
        ANY: {"training": {"optimizer": "adam", "learning_rate": 0.001}},
        "split-mnist": {"options": {"strength": 600.0}},
        "split-fashion-mnist": {"options": {"strength": 600.0}, "training": {"epochs": 4}},
    }
    search_space: ClassVar = {
        "training.learning_rate": Uniform(0.0001, 0.01, log=True),
        "method.strength": Uniform(0.1, 1e4, log=True),
        "method.damping": Uniform(0.001, 1.0, log=True),
    }

    def __init__(self, blueprint: Blueprint, settings: MethodSettings, seed: int, device: torch.device = CPU) -> None:
        super().__init__(blueprint, settings, seed, device)
        self.penalty, self.path = Penalty(self.settings.strength), PathIntegral()

    def begin_task(self, task: Task, data: Samples) -> None:
        super().begin_task(task, data)
        self.path.begin(trained(self.values))
        self.penalty.hold(self.path.start)

    def step(self, optimizer: Optimizer) -> None:
        self.path.follow(self.values, self.penalty.without(self.values), lambda: super(SI, self).step(optimizer))

    def end_task(self, task: Task) -> None:
        self.penalty.add(self.path.importance(self.values, self.settings.damping))
        super().end_task(task)

    def task_state(self) -> dict[str, Tensor]:
        return self.path.tensors()

    def resume_task(self, task: Task, data: Samples, tensors: Mapping[str, Tensor]) -> None:
        self.path.load(tensors, self.device)
        self.penalty.hold(self.path.start)
