"""A dense network of which each task may change only a part."""

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import torch
from torch import Tensor

from spacenet.methods.base import Samples, Task
from spacenet.methods.shared.dense import ALL_UNITS, DenseMethod, LossSettings
from spacenet.space.blueprint import BATCH_STATS, Params


@dataclass(frozen=True)
class OwnLossSettings(LossSettings):
    """Which outputs take part in a task's loss, where the published method has only the task's own."""

    loss_over: Literal["all", "own"] = "own"


class Masked(DenseMethod):
    """Frozen numbers are read from a constant copy, so neither momentum nor weight decay can change them."""

    trainable: Params = MappingProxyType({})
    """For each parameter that is partly frozen a mask, True where it is trainable."""
    frozen: Params = MappingProxyType({})
    """The values of these parameters when they were frozen."""

    @abstractmethod
    def trainable_masks(self) -> Params:
        """What the task may change: for each parameter that is partly frozen a mask, True where it is trainable. One
        without a mask is trainable as a whole."""

    def prepare(self, data: Samples) -> None:
        super().prepare(data)
        self.freeze()

    def freeze(self) -> None:
        """Freeze what the task may not change. Batch norm uses the batch's statistics where a unit's shift or bias is
        trainable, the stored ones elsewhere."""
        self.trainable = {name: mask.to(self.device) for name, mask in self.trainable_masks().items()}
        self.frozen = {name: self.params[name].detach().clone() for name in self.trainable}
        for layer in self.blueprint.layers:
            keys = layer.keys()
            trained = [key for key, value in keys.items() if value.trained and key in self.trainable]
            if len(trained) < len(keys) and layer.name + BATCH_STATS in self.uses_batch_stats:
                self.uses_batch_stats[layer.name + BATCH_STATS] = self._trainable_units(trained)

    def _trainable_units(self, keys: list[str]) -> Tensor:
        """Which units of a layer are trainable, by the mask of its last trained value."""
        mask = self.trainable[keys[-1]] if keys else ALL_UNITS
        return mask if mask.dim() == 1 else mask.flatten(1).any(1)

    def unfreeze(self) -> None:
        """Write the effective values into the parameters and make all of them trainable."""
        for name, param in self.params.items():
            param.data.copy_(self.effective_param(name).detach())
        self.trainable, self.frozen = {}, {}

    def output_names(self) -> list[str]:
        return self.param_names(self.blueprint.output.name)

    def empty_masks(self, names: Iterable[str]) -> dict[str, Tensor]:
        """A mask for each of these parameters, False everywhere."""
        return {name: torch.zeros_like(self.params[name], dtype=torch.bool) for name in names}

    def task_output_masks(self) -> dict[str, Tensor]:
        """Masks of the outputs: those of the current task are trainable."""
        masks = self.empty_masks(self.output_names())
        for mask in masks.values():
            mask[self.classes[-1].start :] = True
        return masks

    def unit_masks(self, units: Params) -> dict[str, Tensor]:
        """Masks in which all parameters of these units of each layer are trainable, with their incoming weights."""
        values = [(key, layer, value) for key, (layer, value) in self.blueprint.unit_values().items()]
        masks = {key: units[p.name].view(-1, *(1 for _ in value.shape)) for key, p, value in values if p.name in units}
        links = {link.name: units[link.target].view(-1, 1, *(1 for _ in link.kernel)) for link in self.blueprint.links}
        return masks | links

    def effective_params(self) -> dict[str, Tensor]:
        """The parameters, and the frozen values where they are frozen."""
        return {name: self.effective_param(name) for name in self.params}

    def effective_param(self, name: str) -> Tensor:
        """The same for one parameter."""
        param = self.params[name]
        if name not in self.trainable or not param.requires_grad:
            return param
        return torch.where(self.trainable[name], param, self.frozen[name])

    def training_params(self) -> Params:
        return self.effective_params()

    def end_task(self, task: Task) -> None:
        self.unfreeze()
        super().end_task(task)

    def params_to_save(self) -> dict[str, Tensor]:
        return {name: self.effective_param(name).detach() for name in self.params}

    def load_params(self, params: Params) -> None:
        super().load_params(params)
        self.trainable, self.frozen = {}, {}


class ConsolidatedOutputs(Masked):
    """CWR+'s output layer: each task trains output weights of its own from zero (the paper's tw), which are then added
    to the frozen ones of earlier tasks (its cw). As published, only the task's own outputs take part in its loss."""

    settings: LossSettings

    def add_outputs(self, count: int) -> None:
        super().add_outputs(count)
        for name in self.output_names():
            self.params[name].data[-count:] = 0.0

    def trainable_masks(self) -> dict[str, Tensor]:
        return self.task_output_masks()

    def end_task(self, task: Task) -> None:
        super().end_task(task)
        for name in self.output_names():
            subtract_mean(self.params[name].data[task.classes.start :])


def subtract_mean(weights: Tensor) -> None:
    """cw = tw − avg(tw), in place: makes tasks comparable whose weights grew to different sizes."""
    weights -= weights.mean()
