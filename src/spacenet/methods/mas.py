"""Memory Aware Synapses: weights that the outputs are sensitive to stay near where they were."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from spacenet.config.ranges import Uniform
from spacenet.data.stream import Samples, Task
from spacenet.errors import SettingsError
from spacenet.methods.base import ANY, MethodSettings
from spacenet.methods.shared.per_sample import mean_of_gradients, some_samples
from spacenet.methods.shared.quadratic_penalty import Penalty, QuadraticPenalty
from spacenet.space.blueprint import CPU, Blueprint
from spacenet.utils.seeding import generator


@dataclass(frozen=True)
class MASSettings(MethodSettings):
    """How firmly the old weights are held."""

    strength: float = 1.0
    """What the penalty is multiplied by (the paper's λ)."""
    importance_samples: int = 1000
    """Samples of a task that the sensitivity of the outputs is measured on."""

    def __post_init__(self) -> None:
        if self.strength < 0:
            raise SettingsError(f"strength: {self.strength} is negative")
        if self.importance_samples < 1:
            raise SettingsError(f"importance-samples: {self.importance_samples} is too small (need 1 or more)")


class MAS(QuadraticPenalty):
    """λ Σ Ω (θ − θ*)² is added to the loss; Ω needs no labels.

    About 20 % on five tasks is right: old outputs are held, but scores of new classes are never compared with them
    while old samples are there, so only the last task's classes are ever named.
    """

    name = "mas"
    strategy = "Regularization"
    reference = (
        "Aljundi, Babiloni, Elhoseiny, Rohrbach, Tuytelaars: Memory aware synapses: learning what (not) to forget. "
        "ECCV, 2018"
    )
    settings_from = "Hsu et al. 2018; their four epochs on Split Fashion-MNIST too."
    Settings = MASSettings
    settings: MASSettings
    presets: ClassVar = {
        ANY: {"training": {"optimizer": "adam", "learning_rate": 0.001}},
        "split-fashion-mnist": {"training": {"epochs": 4}},
    }
    search_space: ClassVar = {
        "training.learning_rate": Uniform(0.0001, 0.01, log=True),
        "method.strength": Uniform(0.001, 100.0, log=True),
    }

    def __init__(self, blueprint: Blueprint, settings: MethodSettings, seed: int, device: torch.device = CPU) -> None:
        super().__init__(blueprint, settings, seed, device)
        self.penalty = Penalty(self.settings.strength)

    def begin_task(self, task: Task, data: Samples) -> None:
        super().begin_task(task, data)
        self.penalty.hold(self.values)

    def end_task(self, task: Task) -> None:
        self.penalty.add(self.sensitivity(task))
        super().end_task(task)

    def sensitivity(self, task: Task) -> dict[str, Tensor]:
        """The mean size of the gradient of a sample's squared output norm."""
        rng = generator(self.seed, "sensitivity", task.index)
        some = some_samples(task.train, self.settings.importance_samples, rng).to(self.device)
        return mean_of_gradients(
            self.blueprint,
            self.values,
            some.x,
            some.y,
            objective=lambda output, _: output.square().sum(),
            measure=torch.abs,
        )

    def task_state(self) -> dict[str, Tensor]:
        return self.penalty.anchors()

    def resume_task(self, task: Task, data: Samples, tensors: Mapping[str, Tensor]) -> None:
        self.penalty.load(tensors, self.device)
