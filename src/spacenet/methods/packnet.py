"""PackNet: tasks packed into one network by pruning."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from spacenet.config.ranges import Range, Uniform
from spacenet.data.stream import Samples, Task
from spacenet.errors import SettingsError, SpaceFull
from spacenet.methods.base import MethodSettings
from spacenet.methods.shared.subnetworks import PerTaskBatchNorm
from spacenet.space.blueprint import CPU, Blueprint, Params
from spacenet.utils.optimizers import Optimizer

FREE = 255


@dataclass(frozen=True)
class PackNetSettings(MethodSettings):
    """How much of the network a task leaves to those to come."""

    prune: float = 0.75
    """Part of the weights a task trained that is given back, in every layer: those of the smallest magnitude."""
    retrain_epochs: float = 0.5
    """Epochs in which the weights that are left learn to do without the others, as a part of the planned epochs."""

    def __post_init__(self) -> None:
        if not 0.0 < self.prune < 1.0:
            raise SettingsError(f"prune: {self.prune} is not a part of the weights (need 0 < it < 1)")
        if self.retrain_epochs < 0.0:
            raise SettingsError(f"retrain-epochs: {self.retrain_epochs} is not a part of the epochs (need 0 or more)")


class PackNet(PerTaskBatchNorm):
    """Each task trains what is free, prunes most of it and keeps the rest for good; it reads what others kept before.

    As published, free weights start a task at zero, and biases are the first task's. Unlike there, batch norm is each
    task's own. Every task has output weights of its own, which are not pruned.
    """

    name = "packnet"
    strategy = "Architectural"
    reference = "Mallya, Lazebnik: PackNet: Adding Multiple Tasks to a Single Network by Iterative Pruning. CVPR, 2018"
    settings_from = "As published; the stream's own training."
    Settings = PackNetSettings
    settings: PackNetSettings
    search_space: ClassVar[Mapping[str, Range]] = {
        "training.learning_rate": Uniform(0.01, 0.3, log=True),
        "method.prune": Uniform(0.4, 0.9),
        "method.retrain_epochs": Uniform(0.25, 1.0),
    }

    def __init__(self, blueprint: Blueprint, settings: MethodSettings, seed: int, device: torch.device = CPU) -> None:
        super().__init__(blueprint, settings, seed, device)
        self.owner = {
            link.name: torch.full_like(self.values[link.name], FREE, dtype=torch.uint8) for link in self.inner_links()
        }
        """For every weight the task that it belongs to, or FREE. While a task trains, all it may change is its own."""
        self.planned = 0

    def begin_task(self, task: Task, data: Samples) -> None:
        for link in self.inner_links():
            if task.index >= FREE or not bool((self.owner[link.name] == FREE).any()):
                raise SpaceFull(f"{link.target} is full: no weight that leads to it is free", link.target)
        for owner in self.owner.values():
            owner[owner == FREE] = task.index
        super().begin_task(task, data)
        self._freeze_others()

    def resume_task(self, task: Task, data: Samples, tensors: Mapping[str, Tensor]) -> None:
        self._freeze_others()

    def _freeze_others(self) -> None:
        """Only the task's own weights are free, and in the first task the biases."""
        own = {name: owner == self.tasks_learned for name, owner in self.owner.items()}
        self.freeze(own | self.free_units() | self.free_outputs())

    def epochs(self, planned: int) -> int:
        self.planned = planned
        return planned + math.ceil(self.settings.retrain_epochs * planned)

    def end_epoch(self, epoch: int, optimizer: Optimizer, *, last: bool) -> None:
        if epoch == self.planned - 1:
            self.prune()

    def prune(self) -> None:
        """Give back the task's smallest weights. All parameters are new then, and the optimiser with them."""
        self.settle_values()
        for name, owner in self.owner.items():
            weight = self.values[name].detach().clone()
            own = (owner == self.tasks_learned).flatten().nonzero()[:, 0]
            smallest = weight.flatten()[own].abs().argsort(stable=True)[: round(self.settings.prune * len(own))]
            owner.view(-1)[own[smallest]] = FREE
            self._set(name, weight.masked_fill_(owner == FREE, 0.0))
        self._freeze_others()

    def part(self, values: Params, task: int) -> dict[str, Tensor]:
        if task == self.tasks_learned:  # what is not its own or older is at zero
            return dict(values)
        return {**values, **{name: values[name] * (owner <= task) for name, owner in self.owner.items()}}

    def extra(self) -> dict[str, Tensor]:
        return {f"owner/{name}": owner for name, owner in self.owner.items()}

    def load_model(self, tensors: Mapping[str, Tensor]) -> None:
        super().load_model(tensors)
        self.owner = {name: tensors[f"owner/{name}"].to(self.device, copy=True) for name in self.owner}
