"""Memory Aware Synapses: weights that the outputs are sensitive to stay near their old values."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from annotated_types import Ge
from torch import Tensor

from spacenet.methods.base import Task, Uniform
from spacenet.methods.shared.quadratic_penalty import PenaltySettings, QuadraticPenalty, sample_subset


@dataclass(frozen=True)
class MASSettings(PenaltySettings):
    """How strongly the old weights are held."""

    importance_samples: Annotated[int, Ge(1)] = 1000
    """Samples of a task that the sensitivity of the outputs is measured on."""


class MAS(QuadraticPenalty):
    """λ Σ Ω (θ − θ*)² is added to the loss; Ω needs no labels.

    With the loss over all classes, about 20 % on five tasks is normal: old outputs are preserved, but the scores of
    new classes are never compared with them on old samples, and only classes of the last task are predicted.
    `loss_over` own avoids that. The importance is measured on all outputs in either case.
    """

    name = "mas"
    strategy = "Regularization"
    reference = (
        "Aljundi, Babiloni, Elhoseiny, Rohrbach, Tuytelaars: Memory aware synapses: learning what (not) to forget. "
        "ECCV, 2018"
    )
    settings_from = "Hsu et al. 2018; their four epochs on Split Fashion-MNIST too."
    settings: MASSettings
    training_space: ClassVar = {"training.learning_rate": Uniform(0.0001, 0.01, log=True)}

    def end_task(self, task: Task) -> None:
        self.add_importance(self.sensitivity(task))
        super().end_task(task)

    def sensitivity(self, task: Task) -> dict[str, Tensor]:
        """The mean absolute gradient of a sample's squared output norm."""
        rng = self.rng("sensitivity", task.index)
        some = sample_subset(task.train, self.settings.importance_samples, rng).to(self.device)
        return self.mean_gradients(some.x, some.y, lambda output, _: output.square().sum(), measure=torch.abs)
