"""A network that widens from task to task; each task's model is the part of it that was there when it was learned."""

from collections.abc import Mapping

import torch
from torch import Tensor

from spacenet.data.stream import Task
from spacenet.methods.base import Batch, MethodSettings
from spacenet.methods.shared.masked import Masked
from spacenet.methods.shared.task_models import TaskModels
from spacenet.space.blueprint import CPU, Blueprint


class GrowingMethod(TaskModels, Masked):
    """New units stand behind those of earlier tasks, so a task's model is the front part of every layer."""

    def __init__(self, blueprint: Blueprint, settings: MethodSettings, seed: int, device: torch.device = CPU) -> None:
        super().__init__(blueprint, settings, seed, device)
        self.widths: dict[str, list[int]] = {layer.name: [] for layer in blueprint.hidden}
        """For each hidden layer, how many units the model of each task learned has."""

    def width(self, layer: str) -> int:
        """Units that a layer has now."""
        return self.into(layer)[0].shape[0]

    def pick_units(self, layer: str, which: Tensor) -> None:
        """Let a hidden layer consist of these of its units, by number; one named twice is copied.

        A copy receives and sends what the unit does, so whoever hears both hears it twice.
        """
        for link in self.blueprint.links:
            for axis, end in ((0, link.target), (1, link.source)):
                if end == layer:
                    self._set(link.name, self.values[link.name].data.cpu().index_select(axis, which))
        for each in self.blueprint.hidden:
            for key, value in each.keys().items() if each.name == layer else ():
                self._set(key, self.values[key].data.cpu()[which], value.trained)

    def split_units(self, which: Mapping[str, Tensor], old: Mapping[str, Tensor]) -> None:
        """Each of these old units stays behind with its old values; a copy goes on with the new ones.

        The task's own units and outputs read the copy instead of the original, units of older tasks the original.
        """
        copies = {name: self.width(name) for name in which}
        for name, units in which.items():
            self.pick_units(name, torch.cat([torch.arange(copies[name]), units]))
        shared = {name: ends[-1] for name, ends in self.widths.items()}
        shared[self.blueprint.output.name] = self.classes[-1].start
        for link in self.blueprint.links:
            if link.source in which:
                weight = self.values[link.name].data
                weight[: shared[link.target], copies[link.source] :] = 0.0
                weight[shared[link.target] :, which[link.source]] = 0.0
        for layer, units in which.items():
            for name in self.values_of(layer):
                value = self.values[name].data
                value[units] = 0.0  # what it hears from newer units
                front(value, old[name])[units] = old[name][units]

    def into(self, layer: str) -> list[Tensor]:
        """The weights that lead into a layer."""
        return [self.values[link.name].data for link in self.blueprint.links if link.target == layer]

    def values_of(self, layer: str) -> list[str]:
        """The names of all that belongs to the units of a layer: what leads into them, and their own values."""
        keys = [key for each in self.blueprint.hidden if each.name == layer for key in each.keys()]
        return keys + [link.name for link in self.blueprint.links if link.target == layer]

    def of_task(self, task: int) -> dict[str, Tensor]:
        """The values of a task's model: all units up to its own, and the task's outputs alone."""
        classes, last = self.classes[task], task == self.tasks_learned
        part = {name: slice(self.width(name) if last else ends[task]) for name, ends in self.widths.items()}
        part |= {self.blueprint.input.name: slice(None), self.blueprint.output.name: slice(classes.start, classes.stop)}
        values = {key: self._now(key)[part[layer.name]] for layer in self.blueprint.layers for key in layer.keys()}
        return values | {
            link.name: self._now(link.name)[part[link.target], part[link.source]] for link in self.blueprint.links
        }

    def forward(self, batch: Batch) -> Tensor:
        return self.blueprint.forward({**self.of_task(self.tasks_learned), **self.uses_batch_stats}, batch.x)

    def target(self, batch: Batch) -> Tensor:
        return batch.y - self.classes[-1].start

    def scores(self, x: Tensor, task: int) -> Tensor:
        return self.blueprint.forward(self.of_task(task), x)

    def end_task(self, task: Task) -> None:
        for name, ends in self.widths.items():
            ends.append(self.width(name))
        super().end_task(task)

    def extra(self) -> dict[str, Tensor]:
        widths = {f"widths/{name}": torch.tensor(ends, dtype=torch.int32) for name, ends in self.widths.items()}
        return super().extra() | widths

    def load_model(self, tensors: Mapping[str, Tensor]) -> None:
        super().load_model(tensors)
        self.widths = {name: tensors[f"widths/{name}"].tolist() for name in self.widths}


def front(value: Tensor, old: Tensor) -> Tensor:
    """The part of a value that was there when it had the size of the old one."""
    return value[tuple(map(slice, old.shape))]
