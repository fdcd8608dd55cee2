"""iCaRL: representation learning with exemplars and distillation, prediction by the nearest mean of exemplars."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from spacenet.config.ranges import Uniform
from spacenet.data.stream import Samples, Task
from spacenet.errors import SettingsError
from spacenet.methods.base import ANY, PREDICT_BATCH, Batch, MethodSettings
from spacenet.methods.shared.exemplars import ExemplarMethod, ExemplarSettings
from spacenet.space.blueprint import CPU, Blueprint


def herd(features: Tensor, count: int) -> Tensor:
    """The samples whose mean stays closest to the mean of all, in the order in which they are found (Algorithm 4).

    |μ - (s + f)/k|² is least where 2 f·(kμ - s) - |f|² is largest; s is the sum of those chosen before.
    """
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
    """How many old samples are kept, and how closely old outputs are followed."""

    temperature: float = 2.0
    """Divides the old network's scores before they become targets: with 1, iCaRL's own, it is too sure about samples
    of classes it never saw. Van de Ven and Tolias (Three scenarios for continual learning, 2018) took 2."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.temperature > 0 and math.isfinite(self.temperature)):
            raise SettingsError(f"temperature: {self.temperature} is out of range (need more than 0)")


class ICaRL(ExemplarMethod):
    """Classes are outputs with a sigmoid each; old ones go on giving what the network gave before the task.

    That training is for the features; prediction compares them with each class's mean over its exemplars.
    """

    name = "icarl"
    strategy = "Rehearsal"
    reference = (
        "Rebuffi, Kolesnikov, Sperl, Lampert: iCaRL: Incremental Classifier and Representation Learning. CVPR, 2017"
    )
    settings_from = (
        "Memory, losses, momentum and weight decay as published; epochs, and the temperature that iCaRL itself does "
        "not have, from a small search on held-out data."
    )
    Settings = ICaRLSettings
    settings: ICaRLSettings
    presets: ClassVar = {
        ANY: {"training": {"momentum": 0.9, "weight_decay": 1e-5}},
        "split-mnist": {"training": {"epochs": 10}, "options": {"temperature": 2.5}},
        "split-fashion-mnist": {"training": {"epochs": 6}},
    }
    search_space: ClassVar = {
        "training.learning_rate": Uniform(0.001, 0.3, log=True),
        "training.epochs": Uniform(2, 20, integer=True),
        "method.temperature": Uniform(1.0, 4.0),
    }

    def __init__(self, blueprint: Blueprint, settings: MethodSettings, seed: int, device: torch.device = CPU) -> None:
        super().__init__(blueprint, settings, seed, device)
        self.classifier = next(link.name for link in blueprint.links if link.target == blueprint.output.name)
        self.before: dict[str, Tensor] = {}
        """The network as it was before the task."""
        self.recalled: Tensor | None = None
        """What its outputs are for each training sample, where that can be found once for the whole task."""
        self._means: Tensor | None = None

    def begin_task(self, task: Task, data: Samples) -> None:
        if self.tasks_learned:
            self.before = {name: value.detach().clone() for name, value in self.values.items()}
        super().begin_task(task, data)
        self._open(data)

    def _open(self, data: Samples) -> None:
        if self.before and not data.augmented:  # else an input looks different each time
            self.recalled = torch.cat([self._old_outputs(part) for part in data.x.split(PREDICT_BATCH)])

    def _old_outputs(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            return (self.blueprint.forward(self.before, x) / self.settings.temperature).sigmoid()

    def loss(self, output: Tensor, batch: Batch) -> Tensor:
        """Algorithm 3: binary cross-entropy of each output, summed; the target of old outputs is what they gave."""
        target = F.one_hot(batch.y, output.shape[1]).to(torch.float32)
        if self.before:
            old = self._old_outputs(batch.x) if self.recalled is None else self.recalled.index_select(0, batch.rows)
            target = torch.cat([old, target[:, old.shape[1] :]], 1)
        return F.binary_cross_entropy_with_logits(output.float(), target, reduction="sum") / len(output)

    def features(self, x: Tensor) -> Tensor:
        """What enters the classifier, at length 1."""
        found: dict[str, Tensor] = {}
        with torch.no_grad():
            self.blueprint.forward(self.values, x.to(self.device), found.__setitem__)
        return F.normalize(found[self.classifier].flatten(1))

    def choose(self, x: Tensor, count: int, number: int) -> Tensor:
        return herd(torch.cat([self.features(part) for part in x.split(PREDICT_BATCH)]), count).cpu()

    def end_task(self, task: Task) -> None:
        super().end_task(task)
        self.before, self.recalled, self._means = {}, None, None

    def means(self) -> Tensor:
        """For each class the mean of its exemplars' features, at length 1."""
        if self._means is None:
            kept = self.memory.samples()
            found = torch.cat([self.features(part) for part in kept.x.split(PREDICT_BATCH)])
            classes = range(int(kept.y.max()) + 1)
            own = [(kept.y == number).nonzero().flatten().to(self.device) for number in classes]
            self._means = F.normalize(torch.stack([found[rows].mean(0) for rows in own]))
        return self._means

    def predict(self, x: Tensor) -> Tensor:
        """How near each class's mean is, as the negative distance (Algorithm 1)."""
        return -torch.cdist(self.features(x), self.means())

    def load_model(self, tensors: Mapping[str, Tensor]) -> None:
        super().load_model(tensors)
        self._means = None  # found again when they are asked for: the memory may not be there yet

    def task_state(self) -> dict[str, Tensor]:
        return {f"before/{name}": value for name, value in self.before.items()}

    def resume_task(self, task: Task, data: Samples, tensors: Mapping[str, Tensor]) -> None:
        self.before = {name.removeprefix("before/"): value.to(self.device) for name, value in tensors.items()}
        self._open(data)
