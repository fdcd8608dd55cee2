"""A network that grows with every task; a task's model consists of the units that existed when it was learned."""

from collections.abc import Mapping

import torch
from torch import Tensor

from spacenet.methods.base import Task
from spacenet.methods.shared.task_models import TaskModels

WIDTHS = "widths/"


class GrowingMethod(TaskModels):
    """New units are appended to those of earlier tasks, so a task's model is the first part of every layer."""

    def setup(self) -> None:
        super().setup()
        self.widths: dict[str, list[int]] = {layer.name: [] for layer in self.blueprint.hidden}
        """For each hidden layer, the number of units in the model of each task learned."""

    def width(self, layer: str) -> int:
        """The number of units that a layer has now."""
        return self.incoming_weights(layer)[0].shape[0]

    def pick_units(self, layer: str, which: Tensor) -> None:
        """Reduce a hidden layer to these units, by number; one that is listed twice is copied with all its weights."""
        for link in self.blueprint.links:
            for axis, end in ((0, link.target), (1, link.source)):
                if end == layer:
                    self.set_param(link.name, self.params[link.name].data.cpu().index_select(axis, which))
        for each in self.blueprint.hidden:
            for key, value in each.keys().items() if each.name == layer else ():
                self.set_param(key, self.params[key].data.cpu()[which], value.trained)

    def split_units(self, which: Mapping[str, Tensor], old: Mapping[str, Tensor]) -> None:
        """Duplicate these units: the original gets its old parameters back, the copy keeps the new ones. The task's own
        units and outputs read the copy, the units of older tasks the original."""
        copies = {name: self.width(name) for name in which}
        for name, units in which.items():
            self.pick_units(name, torch.cat([torch.arange(copies[name]), units]))
        shared = {name: widths[-1] for name, widths in self.widths.items()}
        shared[self.blueprint.output.name] = self.classes[-1].start
        for link in self.blueprint.links:
            if link.source in which:
                weight = self.params[link.name].data
                weight[: shared[link.target], copies[link.source] :] = 0.0
                weight[shared[link.target] :, which[link.source]] = 0.0
        for layer, units in which.items():
            for name in self.param_names(layer):
                param = self.params[name].data
                param[units] = 0.0  # its weights from newer units
                crop(param, old[name])[units] = old[name][units]

    def incoming_weights(self, layer: str) -> list[Tensor]:
        """The weights that lead into a layer."""
        return [self.params[link.name].data for link in self.blueprint.links if link.target == layer]

    def param_names(self, layer: str) -> list[str]:
        """The names of all parameters of a layer's units: their own, and their incoming weights."""
        keys = [key for each in self.blueprint.hidden if each.name == layer for key in each.keys()]
        return keys + [link.name for link in self.blueprint.links if link.target == layer]

    def task_params(self, task: int) -> dict[str, Tensor]:
        """The task's units and those of earlier tasks, with the task's own outputs."""
        classes, last = self.classes[task], task == self.tasks_learned
        part = {name: slice(self.width(name) if last else widths[task]) for name, widths in self.widths.items()}
        part |= {self.blueprint.input.name: slice(None), self.blueprint.output.name: slice(classes.start, classes.stop)}
        params = self.effective_params()
        units = {key: params[key][part[layer.name]] for layer in self.blueprint.layers for key in layer.keys()}
        links = {link.name: params[link.name][part[link.target], part[link.source]] for link in self.blueprint.links}
        return units | links

    def end_task(self, task: Task) -> None:
        for name, widths in self.widths.items():
            widths.append(self.width(name))
        super().end_task(task)

    def state(self) -> dict[str, Tensor]:
        widths = {WIDTHS + name: torch.tensor(widths, dtype=torch.int32) for name, widths in self.widths.items()}
        return super().state() | widths

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        super().load_state(state)
        self.widths = {name: state[WIDTHS + name].tolist() for name in self.widths}


def crop(param: Tensor, like: Tensor) -> Tensor:
    """The first part of a parameter in every dimension, of the shape of another: what existed before it grew."""
    return param[tuple(map(slice, like.shape))]
