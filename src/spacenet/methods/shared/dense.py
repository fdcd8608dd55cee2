"""What methods share that train one plain dense network of full width."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from spacenet.data.stream import Samples, Task
from spacenet.methods.base import Batch, LayerUsage, Method, MethodSettings
from spacenet.space.blueprint import BATCH_STATS, CPU, Blueprint
from spacenet.utils.seeding import generator


class DenseMethod(Method):
    """Trains every weight on every task. Outputs appear with their classes."""

    def __init__(self, blueprint: Blueprint, settings: MethodSettings, seed: int, device: torch.device = CPU) -> None:
        super().__init__(blueprint, settings, seed, device)
        self.values: dict[str, nn.Parameter] = {}
        self.uses_batch_stats: dict[str, Tensor] = {}
        self.build()

    def build(self) -> None:
        """A new network without outputs, Glorot-uniform, biases at zero."""
        rng = generator(self.seed, "init", self.tasks_learned)
        size = {layer.name: layer.size for layer in self.blueprint.layers}
        for link in self.blueprint.links:
            sources, targets = size[link.source], size[link.target]
            self._set(link.name, link.initial((targets, sources), sources, targets, rng))
        for layer in self.blueprint.layers:
            for key, value in layer.keys().items():
                self._set(key, torch.full((layer.size,), value.initial), trained=value.trained)
            if any(not value.trained for value in layer.unit_values):
                # Empty: all units follow the batch's statistics.
                self.uses_batch_stats[layer.name + BATCH_STATS] = torch.zeros(0, dtype=torch.bool)

    def _set(self, name: str, value: Tensor, trained: bool = True) -> None:
        self.values[name] = nn.Parameter(value.to(self.device), requires_grad=trained)

    def begin_task(self, task: Task, data: Samples) -> None:
        self.add_outputs(len(task.classes))

    def add_outputs(self, count: int) -> None:
        """Add untrained outputs; what the others compute does not change."""
        output, rng = self.blueprint.output, generator(self.seed, "outputs", self.tasks_learned)
        for link in self.blueprint.links:
            if link.target == output.name:
                old = self.values[link.name].data.cpu()
                sources = old.shape[1]
                new = link.initial((count, sources), sources, count, rng)
                self._set(link.name, torch.cat([old, new]))
        for key in output.keys():
            self._set(key, torch.cat([self.values[key].data.cpu(), torch.zeros(count)]))

    def add_units(self, layer: str, count: int, purpose: str) -> None:
        """Widen a hidden layer by untrained units; random numbers follow from the seed, task and purpose.

        What they send is as untrained as what they receive: whoever must not hear them is not connected by a mask.
        """
        rng = generator(self.seed, purpose, self.tasks_learned)
        for link in self.blueprint.links:
            for axis, end in ((0, link.target), (1, link.source)):
                if end == layer:
                    old = self.values[link.name].data.cpu()
                    shape = [count if number == axis else size for number, size in enumerate(old.shape[:2])]
                    sources, targets = old.shape[1] + count * axis, old.shape[0] + count * (1 - axis)
                    new = link.initial((shape[0], shape[1]), sources, targets, rng)
                    self._set(link.name, torch.cat([old, new], axis))
        for each in self.blueprint.layers:
            for key, value in each.keys().items() if each.name == layer else ():
                new = torch.full((count,), value.initial)
                self._set(key, torch.cat([self.values[key].data.cpu(), new]), value.trained)

    def parameters(self) -> list[nn.Parameter]:
        return [value for value in self.values.values() if value.requires_grad]

    def statistics(self) -> list[Tensor]:
        return [value.data for value in self.values.values() if not value.requires_grad]

    def forward(self, batch: Batch) -> Tensor:
        return self.blueprint.forward({**self.values, **self.uses_batch_stats}, batch.x)

    def predict(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            return self.blueprint.forward(self.values, x)

    def layers(self) -> list[LayerUsage]:
        layers = []
        for layer in self.blueprint.layers[1:]:
            into = [self.values[link.name] for link in self.blueprint.links if link.target == layer.name]
            units = into[0].shape[0]
            connections = sum(weight.shape[0] * weight.shape[1] for weight in into)
            layers.append(LayerUsage(layer.name, units, used=units, reserved=0, unused=0, connections=connections))
        return layers

    def network(self) -> dict[str, Tensor]:
        return {f"values/{name}": value.detach() for name, value in self.values.items()}

    def load_model(self, tensors: Mapping[str, Tensor]) -> None:
        for name, value in self.values.items():
            self._set(name, tensors[f"values/{name}"].clone(), value.requires_grad)

    def resume_task(self, task: Task, data: Samples, tensors: Mapping[str, Tensor]) -> None:
        """The model holds the task's outputs already."""
