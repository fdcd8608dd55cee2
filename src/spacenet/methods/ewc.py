"""Elastic Weight Consolidation: weights with a high Fisher information stay near their old values."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from annotated_types import Ge
from torch import Tensor

from spacenet.methods.base import Task, Uniform, kept
from spacenet.methods.shared.quadratic_penalty import WHAT, PenaltySettings, QuadraticPenalty, pad_rows, sample_subset
from spacenet.space.operations import add_phantoms
from spacenet.utils.tensors import take_tensors


@dataclass(frozen=True)
class EWCSettings(PenaltySettings):
    """How strongly the old weights are held."""

    strength: Annotated[float, Ge(0), Uniform(1.0, 1e6, log=True)] = 100.0
    """The paper's λ; the penalty is multiplied by half of it."""
    fisher_samples: Annotated[int, Ge(1)] = 1000
    """Samples of a task that its Fisher information is estimated on."""


class EWC(QuadraticPenalty):
    """Each task adds λ/2 Σ F (θ − θ*)² to the loss of later ones (eq. 3).

    With the loss over all classes, about 20 % on five tasks is normal: the penalty preserves old outputs, but the
    output of a new class rises for every input because no old samples are left to prevent it, and only classes of the
    last task are predicted. `loss_over` own avoids that.
    """

    name = "ewc"
    strategy = "Regularization"
    reference = "Kirkpatrick et al.: Overcoming catastrophic forgetting in neural networks. PNAS, 2017"
    settings_from = (
        "Hsu et al. 2018 on Split MNIST and Split Fashion-MNIST (their 600, without the ½ of the paper's "
        "λ/2); elsewhere 100 of van de Ven et al. 2021."
    )
    settings: EWCSettings
    factor = 0.5
    anchor: dict[str, Tensor] = kept("anchor", dict)
    """The mean of the parameters after each task, weighted by their importance."""
    training_space: ClassVar = {"training.learning_rate": Uniform(0.0001, 0.01, log=True)}

    def next_anchor(self) -> dict[str, Tensor]:
        return {name: pad_rows(old, self.params[name]) for name, old in self.anchor.items()}

    def check_state(self, state: Mapping[str, Tensor], input_shape: tuple[int, ...]) -> None:
        super().check_state(take_tensors(state, self.measured_shapes("anchor"), WHAT), input_shape)

    def end_task(self, task: Task) -> None:
        self.consolidate(self.fisher(task))
        super().end_task(task)

    def fisher(self, task: Task) -> dict[str, Tensor]:
        """The diagonal of the Fisher information of the likelihood that the loss is computed with; labels are drawn
        from the model's own predictions."""
        rng = self.rng("fisher", task.index)
        x = sample_subset(task.train, self.settings.fisher_samples, rng).x
        scores = add_phantoms(self.outputs_in_loss(self.predict_all(x)), self.phantom_classes)
        labels = torch.multinomial(scores.softmax(1), 1, generator=rng).squeeze(1).to(self.device)

        def objective(output: Tensor, label: Tensor) -> Tensor:
            return self.cross_entropy(self.outputs_in_loss(output), label)

        return self.mean_gradients(x.to(self.device), labels, objective, measure=torch.square)

    def consolidate(self, fisher: Mapping[str, Tensor]) -> None:
        """Add the task's penalty to the earlier ones. The sum is a quadratic around the mean of the θ*, weighted by F;
        its minimum does not depend on θ and is left out."""
        importance, anchor = self.importance, self.anchor
        for name, new in fisher.items():
            param = self.params[name].detach()
            total = importance.get(name, torch.zeros_like(new)) + new
            part = new / total.clamp_min(torch.finfo(new.dtype).tiny)
            anchor[name] = torch.lerp(anchor[name], param, part) if name in anchor else param.clone()
            importance[name] = total
