"""AR1: CWR+'s output layer above a network that goes on learning, held back by Synaptic Intelligence."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from spacenet.config.ranges import Uniform
from spacenet.data.stream import Samples, Task
from spacenet.errors import SettingsError
from spacenet.methods.base import MethodSettings
from spacenet.methods.shared.consolidated import ConsolidatedOutputs
from spacenet.methods.shared.path_integral import PathIntegral
from spacenet.methods.shared.quadratic_penalty import Penalty, QuadraticPenalty, trained
from spacenet.space.blueprint import CPU, Blueprint
from spacenet.utils.optimizers import Optimizer


@dataclass(frozen=True)
class AR1Settings(MethodSettings):
    """How firmly the weights below the output layer are held."""

    strength: float = 100.0
    """What the penalty is multiplied by (λ)."""
    damping: float = 0.1
    """Added to the squared way of a weight, so that one that stood still gets no boundless importance (ξ)."""
    importance_limit: float = 0.01
    """No weight becomes more important than this (the paper's max F): else the penalty's steps can grow too large."""

    def __post_init__(self) -> None:
        if self.strength < 0:
            raise SettingsError(f"strength: {self.strength} is negative")
        for name in ("damping", "importance_limit"):
            if getattr(self, name) <= 0:
                raise SettingsError(f"{name.replace('_', '-')}: {getattr(self, name)} is too small (need more than 0)")


class AR1(QuadraticPenalty, ConsolidatedOutputs):
    """The outputs of each task are trained from zero and kept; below them, λ Σ F (θ − θ̂)² is added to the loss."""

    name = "ar1"
    strategy = "Architectural"
    reference = "Maltoni, Lomonaco: Continuous learning in single-incremental-task scenarios. Neural Networks, 2019"
    settings_from = (
        "The strength of van de Ven et al. 2021 for SI on CIFAR-100, which did better on held-out data than "
        "theirs for MNIST; four epochs on Split Fashion-MNIST."
    )
    Settings = AR1Settings
    settings: AR1Settings
    presets: ClassVar = {"split-fashion-mnist": {"training": {"epochs": 4}}}
    search_space: ClassVar = {
        "training.learning_rate": Uniform(0.001, 0.3, log=True),
        "method.strength": Uniform(0.1, 1e4, log=True),
        "method.importance_limit": Uniform(0.0001, 10.0, log=True),
    }

    def __init__(self, blueprint: Blueprint, settings: MethodSettings, seed: int, device: torch.device = CPU) -> None:
        super().__init__(blueprint, settings, seed, device)
        self.penalty, self.path = Penalty(self.settings.strength), PathIntegral()

    def below(self) -> dict[str, Tensor]:
        """The trained values below the output layer."""
        outputs = self.output_names()
        return {name: value for name, value in trained(self.values).items() if name not in outputs}

    def begin_task(self, task: Task, data: Samples) -> None:
        super().begin_task(task, data)
        self.path.begin(self.below())
        self.penalty.hold(self.path.start)

    def step(self, optimizer: Optimizer) -> None:
        below = self.below()
        self.path.follow(below, self.penalty.without(below), lambda: super(AR1, self).step(optimizer))

    def end_task(self, task: Task) -> None:
        self.penalty.add(self.path.importance(self.values, self.settings.damping), self.settings.importance_limit)
        super().end_task(task)

    def task_state(self) -> dict[str, Tensor]:
        return self.path.tensors()

    def resume_task(self, task: Task, data: Samples, tensors: Mapping[str, Tensor]) -> None:
        super().resume_task(task, data, tensors)
        self.path.load(tensors, self.device)
        self.penalty.hold(self.path.start)
