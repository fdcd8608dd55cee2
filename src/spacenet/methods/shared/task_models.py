"""One model per task within one network, which may grow, and prediction when the task of an input is unknown."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from itertools import product

import torch
from torch import Tensor
from torch.nn import functional as F

from spacenet.methods.base import Task, kept
from spacenet.methods.shared.dense import PhantomSettings
from spacenet.methods.shared.masked import Masked
from spacenet.space.blueprint import BATCH_STATS, Blueprint, Layer, Link, Params
from spacenet.space.operations import add_phantoms
from spacenet.space.pack import Pack
from spacenet.utils.tensors import in_section, section, take_tensors

LEAST = torch.finfo(torch.float32).tiny
"""The smallest probability that has a logarithm."""


class TaskModels(Masked):
    """Every task's model predicts, and the most probable class of all wins, as in the paper's adaptation of DEN.

    A task's model has no outputs of other tasks, so its loss is always over its own; only phantom classes can be added.
    """

    settings: PhantomSettings
    loss_over_own = True

    @abstractmethod
    def task_params(self, task: int) -> dict[str, Tensor]:
        """The parameters of the task's own model, with the task's own outputs only."""

    def training_params(self) -> Params:
        return self.task_params(self.tasks_learned)

    def scores(self, x: Tensor, task: int) -> Tensor:
        """The scores of the task's own model for the task's own classes, one column each."""
        return self.blueprint.forward(self.task_params(task), x)

    def predict(self, x: Tensor) -> Tensor:
        """Probabilities; those of each task sum to 1, or to less where phantom classes take part."""
        with torch.no_grad():
            return torch.cat([self._probabilities(self.scores(x, task)) for task in range(len(self.classes))], 1)

    @cached_property
    def predictor(self) -> Pack:
        """The models of all tasks side by side; their scores are logits."""
        tasks = range(len(self.classes))
        models = [{name: t.detach() for name, t in self.task_params(task).items()} for task in tasks]
        params = {name: t for task in tasks for name, t in in_section(f"{task}", models[task]).items()}

        def forward(params: Params, x: Tensor) -> Tensor:
            found = [self.blueprint.forward(section(params, f"{task}"), x) for task in tasks]
            return torch.cat([self._probabilities(scores) for scores in found], 1).clamp_min(LEAST).log()

        return Pack(forward, params)

    def logits(self, scores: Tensor) -> Tensor:
        return scores.double().clamp_min(LEAST).log()

    def _probabilities(self, scores: Tensor) -> Tensor:
        return add_phantoms(scores, self.phantom_classes).softmax(1)[:, : scores.shape[1]]


class Subnetworks(TaskModels):
    """A task is learned and predicted with its own subnetwork and outputs only."""

    @abstractmethod
    def subnetwork(self, params: Params, task: int) -> dict[str, Tensor]:
        """The parameters that the task's model computes with, still with all outputs."""

    def inner_links(self) -> list[Link]:
        """The links that tasks share; every row of a link into the outputs belongs to one task."""
        return [link for link in self.blueprint.links if link.target != self.blueprint.output.name]

    def task_params(self, task: int) -> dict[str, Tensor]:
        classes, own = self.classes[task], self.subnetwork(self.effective_params(), task)
        return own | {name: own[name][classes.start : classes.stop] for name in self.output_names()}


class PerTaskBatchNorm(Subnetworks):
    """Every task uses all units, with the biases of the first task and batch norm of its own: with that of another
    task, a feature map that was inactive there would be magnified some hundred times."""

    norms: list[dict[str, Tensor]] = kept("network/norms", list)
    """The batch norm of each task learned."""

    def trainable_masks(self) -> dict[str, Tensor]:
        """The task's outputs and batch norm and, in the first task, the biases."""
        layers = [layer for layer in self.blueprint.hidden if self.tasks_learned and not _norm_keys(layer)]
        return self.empty_masks(key for layer in layers for key in layer.keys()) | self.task_output_masks()

    def task_params(self, task: int) -> dict[str, Tensor]:
        return super().task_params(task) | (self.norms[task] if task < self.tasks_learned else {})

    def check_state(self, state: Mapping[str, Tensor], input_shape: tuple[int, ...]) -> None:
        names, values = self._norm_names(), self.blueprint.unit_values()
        for task, name in product(range(len(self.classes)), names):
            (layer, value), key = values[name], f"network/norms/{task}/{name}"
            state = take_tensors(state, {key: (layer.size, *value.shape)}, "batch norm", least=value.least)
        super().check_state(state, input_shape)

    def _norm_names(self) -> list[str]:
        return [key for layer in self.blueprint.hidden for key in _norm_keys(layer)]

    def end_task(self, task: Task) -> None:
        super().end_task(task)
        self.norms.append({key: self.params[key].detach().clone() for key in self._norm_names()})


def scale_hidden(blueprint: Blueprint, fraction: float) -> Blueprint:
    """The same with this fraction of the units of each hidden layer."""
    hidden = tuple(replace(layer, size=max(1, round(layer.size * fraction))) for layer in blueprint.hidden)
    return replace(blueprint, layers=(blueprint.input, *hidden, blueprint.output))


def cut(blueprint: Blueprint, params: Params, units: Params) -> dict[str, Tensor]:
    """These parameters with only the given units of some hidden layers."""
    part = dict(params)
    for link in blueprint.links:
        for axis, end in enumerate((link.target, link.source)):
            if end in units and link.name in part:
                part[link.name] = part[link.name].index_select(axis, units[end])
    for layer in blueprint.hidden:
        for key in (*layer.keys(), layer.name + BATCH_STATS) if layer.name in units else ():
            if key in part and len(part[key]):
                part[key] = part[key].index_select(0, units[layer.name])
    return part


def _norm_keys(layer: Layer) -> list[str]:
    """The names of a layer's batch norm parameters, if it has any."""
    keys = layer.keys()
    return [] if all(value.trained for value in keys.values()) else list(keys)


class GrowingMethod(TaskModels):
    """New units are appended to those of earlier tasks, so a task's model is the first part of every layer."""

    widths: dict[str, Tensor] = kept("widths", on_cpu=True)
    """For each hidden layer, the number of units in the model of each task learned."""

    def setup(self) -> None:
        super().setup()
        self.widths = {layer.name: torch.zeros(0, dtype=torch.int32) for layer in self.blueprint.hidden}

    def check_state(self, state: Mapping[str, Tensor], input_shape: tuple[int, ...]) -> None:
        names = [f"widths/{layer.name}" for layer in self.blueprint.hidden]
        shapes = dict.fromkeys(names, (len(self.classes),))
        rest = take_tensors(state, shapes, "the units of tasks", dtype=torch.int32, least=1)
        if any(bool((state[name].diff() < 0).any()) for name in names):
            raise ValueError("the units of tasks: a task has fewer than one before it")
        self.widths = section(state, "widths")
        super().check_state(rest, input_shape)

    def saved_sizes(self) -> dict[str, int]:
        return super().saved_sizes() | {name: int(widths[-1]) for name, widths in self.widths.items()}

    def width(self, layer: str) -> int:
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
