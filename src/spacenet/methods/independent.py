"""One independent dense network for each task: what isolation alone gives."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar

import torch
from annotated_types import Gt, Le
from torch import Tensor

from spacenet.methods.base import LayerUsage, Params, Samples, Task, Uniform, kept
from spacenet.methods.shared.dense import DenseMethod, PhantomSettings, param_shapes
from spacenet.methods.shared.task_models import scale_hidden
from spacenet.space.blueprint import Blueprint
from spacenet.space.pack import Pack
from spacenet.utils.tensors import in_section, section, take_tensors


@dataclass(frozen=True)
class IndependentSettings(PhantomSettings):
    """The size of a task's network, and what takes part in its loss."""

    width: Annotated[float, Gt(0), Le(1)] = 0.2  # not searched: it decides what the control is compared with
    """Units of a task's network as a fraction of each hidden layer. With 0.2, five tasks together have as many units as
    one network of the other methods. For other proportions, give the hidden layers, and a width of 1."""


class Independent(DenseMethod):
    """Every task trains a new small network, which shares nothing with the others, on its own outputs. The largest
    score of all networks wins. A control for methods that divide one network among tasks: 0.2 of the MLP for Split
    MNIST is as wide as the workspace of a SpaceNet task. Keeps no samples."""

    name = "independent"
    strategy = "Architectural"
    reference = "A control; compare Aljundi, Chakravarty, Tuytelaars: Expert Gate. CVPR, 2017"
    settings_from = "The width follows from SpaceNet's workspace; the stream's own training."
    settings: IndependentSettings
    training_space: ClassVar = DenseMethod.training_space | {"training.epochs": Uniform(1, 20, integer=True)}
    loss_over_own = True
    networks: list[dict[str, Tensor]] = kept("network/tasks", list)
    """The network of each task learned."""

    @classmethod
    def suit_network(cls, blueprint: Blueprint, settings: IndependentSettings) -> Blueprint:
        return scale_hidden(blueprint, settings.width)

    def begin_task(self, task: Task, data: Samples) -> None:
        self.build()
        super().begin_task(task, data)

    def end_task(self, task: Task) -> None:
        self.networks.append(self.copy_params())
        super().end_task(task)

    def all_networks(self) -> list[Params]:
        """With that of the task being learned."""
        return [*self.networks, *([self.params] if self.in_task else [])]

    def predict(self, x: Tensor) -> Tensor:
        """Raw scores: softmax would take away how sure a network is in comparison with the others."""
        with torch.no_grad():
            return torch.cat([self.blueprint.forward(network, x) for network in self.all_networks()], 1)

    @cached_property
    def predictor(self) -> Pack:
        networks = self.all_networks()
        params = {name: t for n, own in enumerate(networks) for name, t in in_section(f"{n}", own).items()}

        def forward(params: Params, x: Tensor) -> Tensor:
            return torch.cat([self.blueprint.forward(section(params, f"{n}"), x) for n in range(len(networks))], 1)

        return Pack(forward, params)

    def layer_usage(self) -> list[LayerUsage]:
        """All networks side by side."""
        layers = []
        for layer in self.blueprint.layers[1:]:
            into = [link.name for link in self.blueprint.links if link.target == layer.name]
            units = sum(len(network[into[0]]) for network in self.all_networks())
            connections = sum(network[name].shape[:2].numel() for network in self.all_networks() for name in into)
            layers.append(LayerUsage(layer.name, units, used=units, reserved=0, unused=0, connections=connections))
        return layers

    def check_state(self, state: Mapping[str, Tensor], input_shape: tuple[int, ...]) -> None:
        sizes, output = self.saved_sizes(), self.blueprint.output.name
        for task, classes in enumerate(self.classes):
            shapes = param_shapes(self.blueprint, sizes | {output: len(classes)})
            own = {f"network/tasks/{task}/{name}": shape for name, shape in shapes.items()}
            state = take_tensors(state, own, f"the network of task {task + 1}")
        super().check_state(state, input_shape)

    def saved_shapes(self, sizes: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
        return {}

    def params_to_save(self) -> dict[str, Tensor]:
        """Only in the middle of a task; then it is among the networks."""
        return super().params_to_save() if self.in_task else {}

    def load_params(self, params: Params) -> None:
        if params:
            super().load_params(params)
