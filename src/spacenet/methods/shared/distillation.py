"""What LwF and LDC share: on a new task's samples, old classes keep the scores that they had before."""

from dataclasses import dataclass
from typing import Annotated

import torch
from annotated_types import Ge, Gt
from torch import Tensor

from spacenet.methods.base import Batch, Samples, Task, Uniform, kept
from spacenet.methods.shared.dense import DenseMethod, LossSettings


@dataclass(frozen=True)
class DistillationSettings(LossSettings):
    """How much the old network's scores count."""

    strength: Annotated[float, Ge(0), Uniform(0.1, 10.0, log=True)] = 1.0
    """Factor of the distillation loss (λo in LwF's paper)."""
    temperature: Annotated[float, Gt(0), Uniform(1.0, 5.0)] = 2.0
    """Divides scores before they are compared: above 1, small ones count more (T in LwF's paper)."""


class Distillation(DenseMethod):
    """Cross-entropy for the new classes, and distillation from the network before the task for the old ones."""

    settings: DistillationSettings
    old: dict[str, Tensor] = kept("task/old", dict)
    """The network before the task, without the task's outputs; empty in the first task."""

    def begin_task(self, task: Task, data: Samples) -> None:
        if self.tasks_learned:
            self.old = self.copy_params()
        super().begin_task(task, data)

    def forward(self, batch: Batch) -> Tensor:
        """The scores that take part in the loss; those of old classes are left for `loss` in either case."""
        output = self.compute(batch.x)
        batch.saved["old"] = output[:, : self.classes[-1].start]
        return self.outputs_in_loss(output)

    def loss(self, output: Tensor, batch: Batch) -> Tensor:
        new = super().loss(output, batch)
        if not self.old:
            return new
        with torch.no_grad():
            old = self.blueprint.forward(self.old, batch.x)
        return new + self.settings.strength * self.distillation(batch.saved["old"], old)

    def distillation(self, new: Tensor, old: Tensor) -> Tensor:
        """Cross-entropy between the old and the new softened probabilities of the old classes (eq. 2 to 4 of LwF)."""
        temperature = self.settings.temperature
        target = (old / temperature).softmax(1)
        return -(target * (new.float() / temperature).log_softmax(1)).sum(1).mean()
