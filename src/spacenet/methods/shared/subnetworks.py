"""One network in which every task has a subnetwork and outputs of its own."""

from abc import abstractmethod
from collections.abc import Mapping

import torch
from torch import Tensor

from spacenet.data.stream import Task
from spacenet.methods.base import Batch
from spacenet.methods.shared.masked import Masked
from spacenet.methods.shared.task_models import TaskModels
from spacenet.space.blueprint import Layer, Link, Params

NORMS = "network/norms"


class Subnetworks(TaskModels, Masked):
    """A task is learned and predicted with its own subnetwork and outputs only."""

    @abstractmethod
    def subnetwork(self, params: Params, task: int) -> dict[str, Tensor]:
        """The parameters that the task's model computes with, still with all outputs."""

    def inner_links(self) -> list[Link]:
        """The links that tasks share; every row of a link into the outputs belongs to one task."""
        return [link for link in self.blueprint.links if link.target != self.blueprint.output.name]

    def forward(self, batch: Batch) -> Tensor:
        params = {**self.effective_params(), **self.uses_batch_stats}
        return self.blueprint.forward(self.task_params(params, len(self.classes) - 1), batch.x)

    def target(self, batch: Batch) -> Tensor:
        return batch.y - self.classes[-1].start

    def scores(self, x: Tensor, task: int) -> Tensor:
        return self.blueprint.forward(self.task_params(self.effective_params(), task), x)

    def task_params(self, params: Params, task: int) -> dict[str, Tensor]:
        """The parameters of the task's model: its subnetwork with its own outputs only."""
        classes, own = self.classes[task], self.subnetwork(params, task)
        return own | {name: own[name][classes.start : classes.stop] for name in self.output_names()}


class PerTaskBatchNorm(Subnetworks):
    """Every task uses all units, with the biases of the first task and batch norm of its own.

    With the batch norm of another task, a feature map that was inactive there would be magnified some hundred times.
    """

    def setup(self) -> None:
        super().setup()
        self.norms: list[dict[str, Tensor]] = []
        """The batch norm of each task learned."""

    def unit_masks(self) -> dict[str, Tensor]:
        """Masks for `freeze_except`: after the first task, biases are frozen and batch norm is trainable."""
        if not self.tasks_learned:
            return {}
        biases = [key for layer in self.blueprint.hidden if not _norm_keys(layer) for key in layer.keys()]
        return {key: torch.zeros_like(self.params[key], dtype=torch.bool) for key in biases}

    def task_params(self, params: Params, task: int) -> dict[str, Tensor]:
        found = super().task_params(params, task)
        return found | self.norms[task] if task < self.tasks_learned else found

    def end_task(self, task: Task) -> None:
        super().end_task(task)
        self.norms.append({key: self.params[key].detach().clone() for key in self._norm_names()})

    def state(self) -> dict[str, Tensor]:
        norms = {f"{NORMS}/{task}/{key}": norm for task, own in enumerate(self.norms) for key, norm in own.items()}
        return super().state() | norms

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        super().load_state(state)
        names, tasks = self._norm_names(), range(self.tasks_learned)
        self.norms = [
            {key: state[f"{NORMS}/{task}/{key}"].to(self.device, copy=True) for key in names} for task in tasks
        ]

    def _norm_names(self) -> list[str]:
        return [key for layer in self.blueprint.hidden for key in _norm_keys(layer)]


def _norm_keys(layer: Layer) -> list[str]:
    """The names of a layer's batch norm parameters, if it has any."""
    keys = layer.keys()
    return [] if all(value.trained for value in keys.values()) else list(keys)
