"""Methods that train one plain dense network of full width: a base for them, and the two bounds."""

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from spacenet.methods.base import Batch, Layer, Method
from spacenet.seeding import generator
from spacenet.streams.stream import Samples, Task


class DenseMethod(Method):
    """Trains every weight on every task. Outputs appear with their classes."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self.values: dict[str, nn.Parameter] = {}
        self._build()

    def _build(self) -> None:
        """A new network without outputs, Glorot-uniform, biases at zero."""
        rng = generator(self.seed, "init", self.tasks_learned)
        size = {population.name: population.size for population in self.blueprint.populations}
        for link in self.blueprint.links:
            targets, sources, elements = size[link.target], size[link.source], math.prod(link.kernel)
            bound = math.sqrt(6 / ((targets + sources) * elements))
            weight = torch.empty(targets, sources, *link.kernel).uniform_(-bound, bound, generator=rng)
            self.values[link.name] = nn.Parameter(weight)
        for population in self.blueprint.populations:
            self.values |= {key: nn.Parameter(torch.zeros(population.size)) for key in population.keys()}

    def begin_task(self, task: Task, data: Samples) -> None:
        self._add_outputs(len(task.classes))

    def _add_outputs(self, count: int) -> None:
        output, rng = self.blueprint.output, generator(self.seed, "outputs", self.tasks_learned)
        for link in self.blueprint.links:
            if link.target == output.name:
                old = self.values[link.name].data
                bound = math.sqrt(6 / (old.shape[1] + count))
                new = torch.empty(count, *old.shape[1:]).uniform_(-bound, bound, generator=rng)
                self.values[link.name] = nn.Parameter(torch.cat([old, new]))
        for key in output.keys():
            self.values[key] = nn.Parameter(torch.cat([self.values[key].data, torch.zeros(count)]))

    def parameters(self) -> list[nn.Parameter]:
        return list(self.values.values())

    def forward(self, batch: Batch) -> Tensor:
        return self.blueprint.forward(self.values, batch.x)

    def predict(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            return self.blueprint.forward(self.values, x)

    def layers(self) -> list[Layer]:
        layers = []
        for population in self.blueprint.populations[1:]:
            into = [self.values[link.name] for link in self.blueprint.links if link.target == population.name]
            units = into[0].shape[0]
            connections = sum(weight.shape[0] * weight.shape[1] for weight in into)
            layers.append(Layer(population.name, units, used=units, reserved=0, unused=0, connections=connections))
        return layers

    def model(self) -> dict[str, Tensor]:
        return {f"values/{name}": value.detach() for name, value in self.values.items()}

    def load_model(self, tensors: Mapping[str, Tensor]) -> None:
        self.values = {name: nn.Parameter(tensors[f"values/{name}"].clone()) for name in self.values}

    def resume_task(self, task: Task, data: Samples, tensors: Mapping[str, Tensor]) -> None:
        """The model holds the task's outputs already."""


class Naive(DenseMethod):
    """Fine-tuning: each task is learned as if nothing had come before. The lower bound."""

    name = "naive"
    strategy = "Bound"


class Joint(DenseMethod):
    """All data at once: a new network is trained on everything seen so far. The upper bound."""

    name = "joint"
    strategy = "Bound"

    def begin_task(self, task: Task, data: Samples) -> None:
        self._build()
        self._add_outputs(task.classes.stop)

    def end_task(self, task: Task) -> None:
        super().end_task(task)
        self.memory.keep(task)
