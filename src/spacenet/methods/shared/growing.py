"""A network that grows with every task; a task's model consists of the units that existed when it was learned."""

import torch
from torch import Tensor
from torch.nn import functional as F

from spacenet.methods.base import Task, kept
from spacenet.methods.shared.task_models import TaskModels, cut
from spacenet.space.blueprint import Params


class GrowingMethod(TaskModels):
    """New units are appended to those of earlier tasks, so a task's model is the first part of every layer."""

    widths: dict[str, Tensor] = kept("widths", on_cpu=True)
    """For each hidden layer, the number of units in the model of each task learned."""

    def setup(self) -> None:
        super().setup()
        self.widths = {layer.name: torch.zeros(0, dtype=torch.int32) for layer in self.blueprint.hidden}

    def width(self, layer: str) -> int:
        """The number of units that a layer has now."""
        return len(next(iter(self.incoming_weights(layer).values())))

    def pick_units(self, layer: str, which: Tensor) -> None:
        """Reduce a hidden layer to these units, by number; one that is listed twice is copied with all its weights."""
        for name, param in cut(self.blueprint, self.params, {layer: which.to(self.device)}).items():
            self.set_param(name, param.data, self.params[name].requires_grad)

    def split_units(self, which: Params, old: Params) -> None:
        """Duplicate these units: the original gets its old parameters back, the copy keeps the new ones. The task's own
        units and outputs read the copy, the units of older tasks the original."""
        copies = {name: self.width(name) for name in which}
        for name, units in which.items():
            self.pick_units(name, torch.cat([torch.arange(copies[name]), units]))
        shared = {name: int(widths[-1]) for name, widths in self.widths.items()}
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
            self.widths[name] = F.pad(widths, (0, 1), value=self.width(name))
        super().end_task(task)


def crop(param: Tensor, like: Tensor) -> Tensor:
    """The first part of a parameter in every dimension, of the shape of another: what existed before it grew."""
    return param[tuple(map(slice, like.shape))]
