"""The base of methods that train one dense network of full width."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal

import torch
from annotated_types import Ge
from torch import Tensor, nn
from torch.nn import functional as F

from spacenet.methods.base import Batch, LayerUsage, Method, MethodSettings, Samples, Task
from spacenet.space.blueprint import BATCH_STATS, TRAINING, Blueprint, Hook, Link, Params
from spacenet.space.operations import add_phantoms
from spacenet.space.pack import Pack
from spacenet.utils.tensors import check_finite, in_section, section, take_tensors

PARAMS = "network/params"
ALL_UNITS = torch.zeros(0, dtype=torch.bool)
"""An empty mask stands for all units."""


@dataclass(frozen=True)
class PhantomSettings(MethodSettings):
    """What takes part in a task's loss besides the task's own outputs."""

    phantom_classes: Annotated[int, Ge(0)] = 0
    """Classes of other tasks that take part in the loss without outputs of their own: their score is always 0."""


@dataclass(frozen=True)
class LossSettings(PhantomSettings):
    """Which outputs take part in a task's loss."""

    loss_over: Literal["all", "own"] = "all"
    """The outputs that the cross-entropy of a task is computed over: those of all classes seen so far, or only those of
    the task's own classes, so that learning them does not push the scores of old classes down."""


class DenseMethod(Method):
    """Trains every weight on every task. Outputs are added with their classes.

    A method whose settings are `LossSettings` lets the user choose which outputs take part in the loss.
    """

    loss_over_own = False
    """Whether only the outputs of the current task take part in its loss."""
    phantom_classes = 0

    def setup(self) -> None:
        super().setup()
        if isinstance(self.settings, PhantomSettings):
            self.phantom_classes = self.settings.phantom_classes
        if isinstance(self.settings, LossSettings):
            self.loss_over_own = self.settings.loss_over == "own"
        self.params: dict[str, nn.Parameter] = {}
        self.uses_batch_stats: dict[str, Tensor] = {}
        """For each layer with batch norm, which units use the statistics of the batch in training."""
        self.build()

    def build(self) -> None:
        """Create a new network without outputs: weights Glorot-uniform, biases zero."""
        rng = self.rng("init", self.tasks_learned)
        size = {layer.name: layer.size for layer in self.blueprint.layers}
        for link in self.blueprint.links:
            sources, targets = size[link.source], size[link.target]
            self.set_param(link.name, link.initial((targets, sources), sources, targets, rng))
        for layer in self.blueprint.layers:
            for key, value in layer.keys().items():
                self.set_param(key, value.start(layer.size, rng), trained=value.trained)
            if any(not value.trained for value in layer.unit_values):
                self.uses_batch_stats[layer.name + BATCH_STATS] = ALL_UNITS
        if self.blueprint.drops:
            self.uses_batch_stats[TRAINING] = ALL_UNITS

    @classmethod
    def count_new_numbers(cls, blueprint: Blueprint, settings: Any) -> int:
        sizes = {layer.name: layer.size for layer in blueprint.layers}
        return sum(map(math.prod, param_shapes(blueprint, sizes).values()))

    def set_param(self, name: str, value: Tensor, trained: bool = True) -> None:
        """Replace a parameter by a new one with this value, of any shape."""
        self.params[name] = nn.Parameter(value.to(self.device), requires_grad=trained)

    def begin_task(self, task: Task, data: Samples) -> None:
        super().begin_task(task, data)
        if count := self.new_outputs(task):
            self.add_outputs(count)
        self.prepare(data)

    def resume_task(self, task: Task, data: Samples) -> None:
        super().resume_task(task, data)
        self.prepare(data)

    def prepare(self, data: Samples) -> None:
        """Create what a task needs in training and no state holds: when it begins, with its outputs, or is resumed."""

    def new_outputs(self, task: Task) -> int:
        """How many outputs the network gets when a task begins."""
        return len(task.classes)

    def add_outputs(self, count: int) -> None:
        """Add untrained outputs. The scores of the existing ones do not change."""
        self.add_units(self.blueprint.output.name, count, "outputs")

    def add_units(self, layer: str, count: int, purpose: str) -> None:
        """Widen a layer by untrained units. Seed, task and purpose determine the random numbers. Their outgoing weights
        are untrained too; a method that must keep other units unaffected sets them to zero."""
        rng = self.rng(purpose, self.tasks_learned)
        for link in self.blueprint.links:
            for axis, end in enumerate((link.target, link.source)):
                if end == layer:
                    old = self.params[link.name].data.cpu()
                    shape, size = list(old.shape[:2]), list(old.shape[:2])
                    shape[axis] = count
                    # A task's outputs are initialized like a layer of their own.
                    size[axis] = count if layer == self.blueprint.output.name else size[axis] + count
                    new = link.initial(tuple(shape), size[1], size[0], rng)
                    self.set_param(link.name, torch.cat([old, new], axis))
        for key, (owner, value) in self.blueprint.unit_values().items():
            if owner.name == layer:
                new = value.start(count, rng)
                self.set_param(key, torch.cat([self.params[key].data.cpu(), new]), value.trained)

    def incoming_weights(self, layer: str) -> dict[str, Tensor]:
        """The weights that lead into a layer, by link."""
        return {link.name: self.params[link.name].data for link in self.blueprint.links if link.target == layer}

    def param_names(self, layer: str) -> list[str]:
        """The names of all parameters of a layer's units: their own, and their incoming weights."""
        keys = [key for key, (owner, _) in self.blueprint.unit_values().items() if owner.name == layer]
        return [*keys, *self.incoming_weights(layer)]

    def named_parameters(self) -> dict[str, nn.Parameter]:
        return {name: param for name, param in self.params.items() if param.requires_grad}

    def statistics(self) -> list[Tensor]:
        return [param.data for param in self.params.values() if not param.requires_grad]

    def training_params(self) -> Params:
        """What the network computes with in training."""
        return self.params

    def compute(self, x: Tensor, hook: Hook | None = None) -> Tensor:
        return self.blueprint.forward({**self.training_params(), **self.uses_batch_stats}, x, hook)

    def forward(self, batch: Batch) -> Tensor:
        return self.outputs_in_loss(self.compute(batch.x))

    def outputs_in_loss(self, output: Tensor) -> Tensor:
        """The columns that take part in the loss; the task's own are the last ones."""
        own = len(self.classes[-1]) if self.loss_over_own else output.shape[-1]
        return output[..., -own:] if output.shape[-1] > own else output

    def target(self, batch: Batch) -> Tensor:
        return batch.y - self.classes[-1].start if self.loss_over_own else batch.y

    def loss(self, output: Tensor, batch: Batch) -> Tensor:
        return self.cross_entropy(output, self.target(batch))

    def cross_entropy(self, scores: Tensor, target: Tensor) -> Tensor:
        """The cross-entropy over these scores and the phantom classes."""
        return F.cross_entropy(add_phantoms(scores, self.phantom_classes), target)

    def predict(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            return self.blueprint.forward(self.params, x)

    @cached_property
    def predictor(self) -> Pack:
        if type(self).predict is not DenseMethod.predict:
            return super().predictor
        return Pack(self.blueprint.forward, {name: param.detach() for name, param in self.params.items()})

    def features(self, x: Tensor) -> Tensor:
        """The inputs of the classifier: (n, d)."""
        return self.features_of(self.params, x)

    def features_of(self, params: Params, x: Tensor) -> Tensor:
        """The same in a network with these parameters."""
        found: dict[str, Tensor] = {}
        with torch.no_grad():
            self.blueprint.forward(params, x.to(self.device), found.__setitem__)
        return self.blueprint.features(found)

    def count_features(self, input_shape: tuple[int, ...]) -> int:
        """How many inputs the classifier has for samples of this shape."""
        return self.features(torch.zeros(0, *input_shape)).shape[1]

    def copy_params(self) -> dict[str, Tensor]:
        return {name: param.detach().clone() for name, param in self.params.items()}

    def layer_usage(self) -> list[LayerUsage]:
        layers = []
        for layer in self.blueprint.layers[1:]:
            into = [self.connected(link) for link in self.blueprint.links if link.target == layer.name]
            units, connections = len(into[0]), sum(int(each.sum()) for each in into)
            layers.append(LayerUsage(layer.name, units, used=units, reserved=0, unused=0, connections=connections))
        return layers

    def connected(self, link: Link) -> Tensor:
        """Which connections of a link exist, (targets, sources)."""
        return torch.ones(self.params[link.name].shape[:2], dtype=torch.bool)

    def state(self) -> dict[str, Tensor]:
        return super().state() | in_section(PARAMS, self.params_to_save())

    def check_state(self, state: Mapping[str, Tensor], input_shape: tuple[int, ...]) -> None:
        saved = self.saved_shapes(self.saved_sizes())
        shapes = {f"{PARAMS}/{name}": shape for name, shape in saved.items()}
        rest = take_tensors(state, shapes, "the network")
        for key, (_, value) in self.blueprint.unit_values().items():
            check_finite(state, {f"{PARAMS}/{key}": value.least} if f"{PARAMS}/{key}" in shapes else {}, "the network")
        super().check_state(rest, input_shape)

    def saved_sizes(self) -> dict[str, int]:
        """How many units each layer has after the tasks in `classes`."""
        sizes = {layer.name: layer.size for layer in self.blueprint.layers}
        return sizes | {self.blueprint.output.name: self.classes[-1].stop if self.classes else 0}

    def saved_shapes(self, sizes: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
        """The shapes of what `params_to_save` returns, with this many units in each layer."""
        return param_shapes(self.blueprint, sizes)

    def params_to_save(self) -> dict[str, Tensor]:
        """The parameters as `state` holds them; `load_params` restores them."""
        return {name: param.detach() for name, param in self.params.items()}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        super().load_state(state)
        self.load_params(section(state, PARAMS))

    def load_params(self, params: Params) -> None:
        """Restore what `params_to_save` returned. The order of `self.params` stays."""
        for name, old in self.params.items():
            self.set_param(name, params[name].clone(), old.requires_grad)


def param_shapes(blueprint: Blueprint, sizes: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """The shape of every parameter of a network with this many units in each layer."""
    values = {key: (sizes[layer.name], *value.shape) for key, (layer, value) in blueprint.unit_values().items()}
    return values | {link.name: (sizes[link.target], sizes[link.source], *link.kernel) for link in blueprint.links}
