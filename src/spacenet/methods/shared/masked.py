"""A dense network of which each task may change only a part."""

from collections.abc import Mapping

import torch
from torch import Tensor

from spacenet.data.stream import Task
from spacenet.methods.base import Batch, MethodSettings
from spacenet.methods.shared.dense import DenseMethod
from spacenet.space.blueprint import BATCH_STATS, CPU, Blueprint
from spacenet.utils.optimizers import Optimizer


class Masked(DenseMethod):
    """Numbers that are not free cannot change: what is computed takes them from a constant, not from the parameters.

    So neither momentum nor weight decay can reach them, and nothing has to be restored. A method calls `freeze` in
    `begin_task` and in `resume_task`, with what is free by then.
    """

    def __init__(self, blueprint: Blueprint, settings: MethodSettings, seed: int, device: torch.device = CPU) -> None:
        super().__init__(blueprint, settings, seed, device)
        self.free: Mapping[str, Tensor] = {}
        self.fixed: Mapping[str, Tensor] = {}

    def freeze(self, free: Mapping[str, Tensor]) -> None:
        """From here on only these change: for each value by name a mask, True where it is free; without one, all is.

        Batch norm's statistics follow the batch where the unit's shift (or bias) is free, and stay elsewhere.
        """
        self.free = {name: mask.to(self.device) for name, mask in free.items()}
        self.fixed = {name: self.values[name].detach().clone() for name in free}
        for layer in self.blueprint.layers:
            keys = layer.keys()
            trained = [key for key, value in keys.items() if value.trained and key in self.free]
            if len(trained) < len(keys) and layer.name + BATCH_STATS in self.uses_batch_stats:
                self.uses_batch_stats[layer.name + BATCH_STATS] = self.free[trained[-1]] if trained else _NONE

    def output_names(self) -> list[str]:
        """The values of the output layer."""
        output = self.blueprint.output
        return [*(link.name for link in self.blueprint.links if link.target == output.name), *output.keys()]

    def free_outputs(self) -> dict[str, Tensor]:
        """Masks for `freeze`: of the outputs, those of the task being learned are free."""
        masks = {name: torch.zeros_like(self.values[name], dtype=torch.bool) for name in self.output_names()}
        for mask in masks.values():
            mask[self.classes[-1].start :] = True
        return masks

    def in_training(self) -> dict[str, Tensor]:
        """The values with which a batch is computed."""
        return {name: self._now(name) for name in self.values}

    def _now(self, name: str) -> Tensor:
        value = self.values[name]
        if name not in self.free or not value.requires_grad:
            return value
        return torch.where(self.free[name], value, self.fixed[name])

    def forward(self, batch: Batch) -> Tensor:
        return self.blueprint.forward({**self.in_training(), **self.uses_batch_stats}, batch.x)

    def end_task(self, task: Task) -> None:
        self.settle_values()
        super().end_task(task)

    def settle_values(self) -> None:
        """Let the parameters be what was computed with, and everything be free again."""
        with torch.no_grad():
            for name, value in self.values.items():
                value.copy_(self._now(name))
        self.free, self.fixed = {}, {}

    def network(self) -> dict[str, Tensor]:
        return {f"values/{name}": self._now(name).detach() for name in self.values}

    @staticmethod
    def forget_history(optimizer: Optimizer) -> None:
        """Start the optimiser anew, where a task's training goes over to another phase."""
        optimizer.reset()


_NONE = torch.zeros(0, dtype=torch.bool)
