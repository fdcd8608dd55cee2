"""Elastic Weight Consolidation: weights that the Fisher information calls important stay near where they were."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from spacenet.config.ranges import Uniform
from spacenet.data.stream import Samples, Task
from spacenet.errors import SettingsError
from spacenet.methods.base import ANY, MethodSettings
from spacenet.methods.shared.per_sample import mean_of_gradients, some_samples
from spacenet.methods.shared.quadratic_penalty import Penalty, QuadraticPenalty, as_wide
from spacenet.space.blueprint import CPU, Blueprint
from spacenet.utils.seeding import generator


@dataclass(frozen=True)
class EWCSettings(MethodSettings):
    """How firmly the old weights are held."""

    strength: float = 100.0
    """The paper's λ; half of it multiplies the penalty."""
    fisher_samples: int = 1000
    """Samples of a task that its Fisher information is measured on."""

    def __post_init__(self) -> None:
        if self.strength < 0:
            raise SettingsError(f"strength: {self.strength} is negative")
        if self.fisher_samples < 1:
            raise SettingsError(f"fisher-samples: {self.fisher_samples} is too small (need 1 or more)")


class EWC(QuadraticPenalty):
    """After each task, λ/2 Σ F (θ − θ*)² more is to be paid for leaving its solution (eq. 3).

    About 20 % on five tasks is right: the penalty keeps old outputs as they are, but a new class's output is raised
    for every input while no old sample is there to object, so only the last task's classes are ever named.
    """

    name = "ewc"
    strategy = "Regularization"
    reference = "Kirkpatrick et al.: Overcoming catastrophic forgetting in neural networks. PNAS, 2017"
    settings_from = (
        "Hsu et al. 2018 on Split MNIST and Split Fashion-MNIST (their 600, without the ½ of the paper's "
        "λ/2); elsewhere 100 of van de Ven et al. 2021."
    )
    Settings = EWCSettings
    settings: EWCSettings
    # As in Hsu et al. 2018, where nothing is halved; elsewhere as in van de Ven et al. 2021.
    presets: ClassVar = {
        ANY: {"training": {"optimizer": "adam", "learning_rate": 0.001}},
        "split-mnist": {"options": {"strength": 1200.0}},
        "split-fashion-mnist": {"options": {"strength": 1200.0}, "training": {"epochs": 4}},
    }
    search_space: ClassVar = {
        "training.learning_rate": Uniform(0.0001, 0.01, log=True),
        "method.strength": Uniform(1.0, 1e6, log=True),
    }

    def __init__(self, blueprint: Blueprint, settings: MethodSettings, seed: int, device: torch.device = CPU) -> None:
        super().__init__(blueprint, settings, seed, device)
        self.penalty = Penalty(self.settings.strength / 2)

    def begin_task(self, task: Task, data: Samples) -> None:
        super().begin_task(task, data)
        for part in (self.penalty.importance, self.penalty.anchor):
            part.update({name: as_wide(tensor, self.values[name]) for name, tensor in part.items()})

    def end_task(self, task: Task) -> None:
        fisher = self.fisher(task)
        self.consolidate(fisher)
        super().end_task(task)

    def fisher(self, task: Task) -> dict[str, Tensor]:
        """The diagonal of the Fisher information; labels are drawn from what the model itself believes."""
        rng = generator(self.seed, "fisher", task.index)
        x = some_samples(task.train, self.settings.fisher_samples, rng).x
        believed = torch.multinomial(self.predict_all(x).softmax(1), 1, generator=rng).squeeze(1)
        return mean_of_gradients(
            self.blueprint,
            self.values,
            x.to(self.device),
            believed.to(self.device),
            objective=F.cross_entropy,
            measure=torch.square,
        )

    def consolidate(self, fisher: Mapping[str, Tensor]) -> None:
        """Add the task's penalty to those before. Their sum is one quadratic, about the mean of the θ* weighted by F.

        What the sum is at that point does not depend on θ and is left out.
        """
        importance, anchor = self.penalty.importance, self.penalty.anchor
        for name, new in fisher.items():
            value = self.values[name].detach()
            total = importance.get(name, torch.zeros_like(new)) + new
            part = new / total.clamp_min(torch.finfo(new.dtype).tiny)
            anchor[name] = torch.lerp(anchor[name], value, part) if name in anchor else value.clone()
            importance[name] = total

    def extra(self) -> dict[str, Tensor]:
        return self.penalty.importances() | self.penalty.anchors()
