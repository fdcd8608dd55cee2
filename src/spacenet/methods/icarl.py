"""iCaRL: representation learning with exemplars and distillation; the nearest mean of exemplars predicts."""

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar

import torch
from annotated_types import Gt
from torch import Tensor
from torch.nn import functional as F

from spacenet.methods.base import PREDICT_BATCH, Batch, Method, Samples, Task, Uniform, kept
from spacenet.methods.shared.exemplars import ExemplarMethod, ExemplarSettings


def herd(features: Tensor, count: int) -> Tensor:
    """The samples whose running mean stays closest to the mean of all, in the order of choice (Algorithm 4)."""
    # |μ - (s + f)/k|² is smallest where 2 f·(kμ - s) - |f|² is largest; s is the sum of those chosen before.
    mean, squares = features.mean(0), features.square().sum(1)
    missing, taken = mean.clone(), torch.zeros_like(squares)
    order = []
    for _ in range(min(count, len(features))):
        best = (2 * (features @ missing) - squares + taken).argmax()
        order.append(best)
        taken[best] = -torch.inf
        missing += mean - features[best]
    return torch.stack(order)


@dataclass(frozen=True)
class ICaRLSettings(ExemplarSettings):
    """How many old samples are kept, and how targets for old outputs are computed."""

    temperature: Annotated[float, Gt(0), Uniform(1.0, 4.0)] = 2.0
    """Divides the old network's scores before they become targets. With 1, as published, the old network is too
    certain about samples of new classes; van de Ven and Tolias (Three scenarios for continual learning, 2018) use 2."""


class ICaRL(ExemplarMethod):
    """Each class has an output with a sigmoid; the targets of old ones are the network's outputs before the task. This
    trains the features; prediction compares them with the mean of each class's exemplars."""

    name = "icarl"
    strategy = "Rehearsal"
    reference = (
        "Rebuffi, Kolesnikov, Sperl, Lampert: iCaRL: Incremental Classifier and Representation Learning. CVPR, 2017"
    )
    settings_from = (
        "Memory, losses, momentum and weight decay as published; epochs, and the temperature that iCaRL itself does "
        "not have, from a small search on held-out data."
    )
    settings: ICaRLSettings
    before: dict[str, Tensor] = kept("task/before", dict)
    """The network before the task; empty in the first task."""
    old_outputs: Tensor | None = None
    """Its outputs for each training sample, where inputs do not vary from epoch to epoch."""
    training_space: ClassVar = Method.training_space | {"training.epochs": Uniform(2, 20, integer=True)}

    def begin_task(self, task: Task, data: Samples) -> None:
        if self.tasks_learned:
            self.before = self.copy_params()
        super().begin_task(task, data)

    def prepare(self, data: Samples) -> None:
        super().prepare(data)
        fixed = self.before and not data.augmented
        parts = [self._compute_old_outputs(part) for part in data.x.split(PREDICT_BATCH)] if fixed else []
        self.old_outputs = torch.cat(parts) if parts else None

    def _compute_old_outputs(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            return (self.blueprint.forward(self.before, x) / self.settings.temperature).sigmoid()

    def loss(self, output: Tensor, batch: Batch) -> Tensor:
        """Algorithm 3: the outputs' summed binary cross-entropies; targets of old outputs are their former values."""
        target = F.one_hot(batch.y, output.shape[1]).to(torch.float32)
        if self.before:
            known = self.old_outputs
            old = self._compute_old_outputs(batch.x) if known is None else known.index_select(0, batch.rows)
            target = torch.cat([old, target[:, old.shape[1] :]], 1)
        return F.binary_cross_entropy_with_logits(output.float(), target, reduction="sum") / len(output)

    def features(self, x: Tensor) -> Tensor:
        """The inputs of the classifier, with norm 1."""
        return F.normalize(super().features(x))

    def choose(self, x: Tensor, count: int, number: int) -> Tensor:
        return herd(torch.cat([self.features(part) for part in x.split(PREDICT_BATCH)]), count).cpu()

    @cached_property
    def means(self) -> Tensor:
        """The mean of each class's exemplar features, with norm 1."""
        samples = self.memory.samples()
        found = torch.cat([self.features(part) for part in samples.x.split(PREDICT_BATCH)])
        classes = range(int(samples.y.max()) + 1)
        own = [(samples.y == number).nonzero().flatten().to(self.device) for number in classes]
        return F.normalize(torch.stack([found[rows].mean(0) for rows in own]))

    def predict(self, x: Tensor) -> Tensor:
        """The negative distance to each class's mean (Algorithm 1)."""
        return -torch.cdist(self.features(x), self.means)
