"""Learning without Forgetting: on the new task's samples, old classes go on to get the scores they got before."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from spacenet.config.ranges import Uniform
from spacenet.data.stream import Samples, Task
from spacenet.errors import SettingsError
from spacenet.methods.base import Batch, MethodSettings
from spacenet.methods.shared.dense import DenseMethod
from spacenet.option_types import Flag
from spacenet.space.blueprint import CPU, Blueprint

OLD = "old/"


@dataclass(frozen=True)
class LwFSettings(MethodSettings):
    """How much the old network's answers count."""

    strength: float = 1.0
    """What the distillation loss is multiplied by (the paper's λo)."""
    temperature: float = 2.0
    """Scores are divided by it before they are compared: above 1, small ones count more (the paper's T)."""

    own_softmax: Flag = False
    """Weigh new classes against each other only, as where each task has a head of its own; not against old ones."""

    def __post_init__(self) -> None:
        if self.strength < 0:
            raise SettingsError(f"strength: {self.strength} is negative")
        if self.temperature <= 0:
            raise SettingsError(f"temperature: {self.temperature} is too small (need more than 0)")


class LwF(DenseMethod):
    """Cross-entropy for the new classes, and distillation of the network as it was when the task began for the old.

    Little above 20 % on five tasks is right: old classes keep their shares among each other, but the cross-entropy
    over all classes pushes them below the new ones on every sample. `own_softmax` leaves that out.
    """

    name = "lwf"
    strategy = "Regularization"
    reference = "Li, Hoiem: Learning without forgetting. IEEE Trans. Pattern Analysis and Machine Intelligence, 2018"
    settings_from = "Temperature as published; strength and learning rate from a small search on held-out data."
    Settings = LwFSettings
    settings: LwFSettings
    presets: ClassVar = {
        "split-mnist": {"options": {"strength": 8.0}, "training": {"learning_rate": 0.05}},
        "split-fashion-mnist": {"options": {"strength": 8.0}, "training": {"learning_rate": 0.01, "epochs": 1}},
    }
    search_space: ClassVar = {
        "training.learning_rate": Uniform(0.001, 0.3, log=True),
        "method.strength": Uniform(0.1, 10.0, log=True),
        "method.temperature": Uniform(1.0, 5.0),
    }

    def __init__(self, blueprint: Blueprint, settings: MethodSettings, seed: int, device: torch.device = CPU) -> None:
        super().__init__(blueprint, settings, seed, device)
        self.old: dict[str, Tensor] = {}
        """The network as it was when the task began, without the task's outputs; empty in the first task."""

    def begin_task(self, task: Task, data: Samples) -> None:
        if self.tasks_learned:
            self.old = {name: value.detach().clone() for name, value in self.values.items()}
        super().begin_task(task, data)

    def loss(self, output: Tensor, batch: Batch) -> Tensor:
        first = self.classes[-1].start if self.settings.own_softmax else 0
        new = F.cross_entropy(output[:, first:], batch.y - first)
        if not self.old:
            return new
        with torch.no_grad():
            old = self.blueprint.forward(self.old, batch.x)
        return new + self.settings.strength * self.distillation(output[:, : old.shape[1]], old)

    def distillation(self, new: Tensor, old: Tensor) -> Tensor:
        """Cross-entropy between the old and the new softened probabilities of the old classes (eq. 2 to 4)."""
        temperature = self.settings.temperature
        target = (old / temperature).softmax(1)
        return -(target * (new.float() / temperature).log_softmax(1)).sum(1).mean()

    def end_task(self, task: Task) -> None:
        self.old = {}
        super().end_task(task)

    def task_state(self) -> dict[str, Tensor]:
        return {OLD + name: value for name, value in self.old.items()}

    def resume_task(self, task: Task, data: Samples, tensors: Mapping[str, Tensor]) -> None:
        self.old = {key.removeprefix(OLD): tensor.to(self.device, copy=True) for key, tensor in tensors.items()}
