"""PackNet: packs several tasks into one network by pruning."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from annotated_types import Ge, Gt, Le, Lt
from torch import Tensor

from spacenet.errors import SpaceFull
from spacenet.methods.base import Optimizer, Params, Samples, Task, Uniform, kept
from spacenet.methods.shared.dense import PhantomSettings
from spacenet.methods.shared.task_models import PerTaskBatchNorm
from spacenet.utils.tensors import take_tensors

FREE = 255


@dataclass(frozen=True)
class PackNetSettings(PhantomSettings):
    """How much of the network a task leaves to later ones."""

    prune: Annotated[float, Gt(0), Lt(1), Uniform(0.4, 0.9)] = 0.75
    """Fraction of a task's weights that is pruned in every layer: those of the smallest magnitude."""
    retrain_epochs: Annotated[float, Ge(0), Le(100), Uniform(0.25, 1.0)] = 0.5
    """Epochs of retraining after pruning, as a fraction of the planned epochs."""


class PackNet(PerTaskBatchNorm):
    """Each task trains the free weights, prunes most of them and freezes the rest. It also uses those of earlier tasks.

    As published, free weights start a task at zero, and all tasks use the first task's biases. Unlike there, each task
    has its own batch norm. Every task has output weights of its own, which are not pruned.
    """

    name = "packnet"
    strategy = "Architectural"
    reference = "Mallya, Lazebnik: PackNet: Adding Multiple Tasks to a Single Network by Iterative Pruning. CVPR, 2018"
    settings_from = "As published; the stream's own training."
    settings: PackNetSettings
    owner: dict[str, Tensor] = kept("owner")
    """For every weight the task that it belongs to, or FREE. During a task, all free weights are its own."""
    planned = 0
    training_space: ClassVar = {"training.learning_rate": Uniform(0.01, 0.3, log=True)}

    def setup(self) -> None:
        super().setup()
        weights = {link.name: self.params[link.name] for link in self.inner_links()}
        self.owner = {name: torch.full_like(weight, FREE, dtype=torch.uint8) for name, weight in weights.items()}

    def check_state(self, state: Mapping[str, Tensor], input_shape: tuple[int, ...]) -> None:
        owners = {f"owner/{link.name}": tuple(self.params[link.name].shape) for link in self.inner_links()}
        rest = take_tensors(state, owners, "owners of weights", dtype=torch.uint8, most=FREE)
        if any(bool(((state[name] >= len(self.classes)) & (state[name] != FREE)).any()) for name in owners):
            raise ValueError("a weight belongs to a task that does not exist")
        super().check_state(rest, input_shape)

    def begin_task(self, task: Task, data: Samples) -> None:
        for link in self.inner_links():  # first, because it may raise SpaceFull
            if task.index >= FREE or not bool((self.owner[link.name] == FREE).any()):
                raise SpaceFull(f"{link.target} is full: none of its incoming weights is free", link.target)
        for owner in self.owner.values():
            owner[owner == FREE] = task.index
        super().begin_task(task, data)

    def trainable_masks(self) -> dict[str, Tensor]:
        """The task's own weights and outputs and, in the first task, the biases."""
        return {name: owner == self.tasks_learned for name, owner in self.owner.items()} | super().trainable_masks()

    def epochs(self, planned: int) -> int:
        self.planned = planned
        return planned + math.ceil(self.settings.retrain_epochs * planned)

    def end_epoch(self, epoch: int, optimizer: Optimizer, *, last: bool) -> None:
        if epoch == self.planned - 1:
            self.prune()

    def prune(self) -> None:
        """Free the task's smallest weights. They become new parameters, so the loop creates a new optimizer."""
        self.unfreeze()
        for name, owner in self.owner.items():
            weight = self.params[name].detach().clone()
            own = (owner == self.tasks_learned).flatten().nonzero()[:, 0]
            smallest = weight.flatten()[own].abs().argsort(stable=True)[: round(self.settings.prune * len(own))]
            owner.view(-1)[own[smallest]] = FREE
            self.set_param(name, weight.masked_fill_(owner == FREE, 0.0))
        self.freeze()

    def subnetwork(self, params: Params, task: int) -> dict[str, Tensor]:
        if task == self.tasks_learned:  # all other weights are zero
            return dict(params)
        return {**params, **{name: params[name] * (owner <= task) for name, owner in self.owner.items()}}
