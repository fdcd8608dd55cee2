"""One network in which every task has a part of its own, and outputs of its own."""

from abc import abstractmethod
from collections.abc import Mapping

import torch
from torch import Tensor

from spacenet.data.stream import Task
from spacenet.methods.base import Batch, MethodSettings
from spacenet.methods.shared.masked import Masked
from spacenet.methods.shared.task_models import TaskModels
from spacenet.space.blueprint import CPU, Blueprint, Layer, Link, Params


class Subnetworks(TaskModels, Masked):
    """A task learns with its part and its outputs alone, and predicts with them ever after."""

    @abstractmethod
    def part(self, values: Params, task: int) -> dict[str, Tensor]:
        """The values with which the task's model computes; its outputs are picked out afterwards."""

    def inner_links(self) -> list[Link]:
        """The links that tasks share; those into the outputs belong to one task each."""
        return [link for link in self.blueprint.links if link.target != self.blueprint.output.name]

    def forward(self, batch: Batch) -> Tensor:
        values = {**self.in_training(), **self.uses_batch_stats}
        return self.blueprint.forward(self.model_of(values, len(self.classes) - 1), batch.x)

    def target(self, batch: Batch) -> Tensor:
        return batch.y - self.classes[-1].start

    def scores(self, x: Tensor, task: int) -> Tensor:
        return self.blueprint.forward(self.model_of(self.in_training(), task), x)

    def model_of(self, values: Params, task: int) -> dict[str, Tensor]:
        """The task's part of the values, with its own outputs alone."""
        classes, part = self.classes[task], self.part(values, task)
        return part | {name: part[name][classes.start : classes.stop] for name in self.output_names()}


class PerTaskBatchNorm(Subnetworks):
    """All units belong to every task's part. Their biases are the first task's; batch norm is each task's own.

    Under the norm of another task, a map that had died there comes back magnified some hundred times.
    """

    def __init__(self, blueprint: Blueprint, settings: MethodSettings, seed: int, device: torch.device = CPU) -> None:
        super().__init__(blueprint, settings, seed, device)
        self.norms: list[dict[str, Tensor]] = []
        """The batch norm of each task learned."""

    def free_units(self) -> dict[str, Tensor]:
        """Masks for `freeze`: after the first task, nothing that units have is free but batch norm."""
        if not self.tasks_learned:
            return {}
        biases = [key for layer in self.blueprint.hidden if not _norm_keys(layer) for key in layer.keys()]
        return {key: torch.zeros_like(self.values[key], dtype=torch.bool) for key in biases}

    def model_of(self, values: Params, task: int) -> dict[str, Tensor]:
        model = super().model_of(values, task)
        return model | self.norms[task] if task < self.tasks_learned else model

    def end_task(self, task: Task) -> None:
        super().end_task(task)
        self.norms.append({key: self.values[key].detach().clone() for key in self._norm_names()})

    def network(self) -> dict[str, Tensor]:
        norms = {f"norms/{task}/{key}": norm for task, own in enumerate(self.norms) for key, norm in own.items()}
        return super().network() | norms

    def load_model(self, tensors: Mapping[str, Tensor]) -> None:
        super().load_model(tensors)
        names, tasks = self._norm_names(), range(self.tasks_learned)
        self.norms = [{key: tensors[f"norms/{task}/{key}"].to(self.device) for key in names} for task in tasks]

    def _norm_names(self) -> list[str]:
        return [key for layer in self.blueprint.hidden for key in _norm_keys(layer)]


def _norm_keys(layer: Layer) -> list[str]:
    """What the units of a layer have, if statistics are among it."""
    keys = layer.keys()
    return [] if all(value.trained for value in keys.values()) else list(keys)
