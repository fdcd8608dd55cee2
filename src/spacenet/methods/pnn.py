"""Progressive neural networks: a new column of units for each task, fed by all earlier ones, which stay as they are."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from spacenet.config.ranges import Choice, Uniform
from spacenet.data.stream import Samples, Task
from spacenet.errors import SettingsError
from spacenet.methods.base import LayerUsage, MethodSettings
from spacenet.methods.shared.growing import GrowingMethod
from spacenet.space.blueprint import CPU, Blueprint, Link


@dataclass(frozen=True)
class PNNSettings(MethodSettings):
    """How much a task adds to the network."""

    column: float = 0.2
    """Width of a task's column, as a share of each layer's.

    1 is published: a whole network for each task. With 0.2 five tasks have together as many units as one network, the
    budget of the methods that do not grow."""

    def __post_init__(self) -> None:
        if not 0.0 < self.column <= 1.0:
            raise SettingsError(f"column: {self.column} is not a share of the layers (need 0 < it ≤ 1)")


class PNN(GrowingMethod):
    """Column by column: lateral connections lead from earlier columns to later ones, never back (equation 1).

    So a link's weights are block-triangular: what would lead back is zero, and neither trained nor stored. The paper's
    adapters (equation 2), which make wide lateral layers narrower, are left out.
    """

    name = "pnn"
    strategy = "Architectural"
    reference = "Rusu, Rabinowitz, Desjardins, Soyer, Kirkpatrick, Kavukcuoglu, Pascanu, Hadsell: Progressive Neural \
Networks. arXiv:1606.04671, 2016"
    settings_from = (
        "The column's width is chosen so that five tasks together have one network's units (published: "
        "a whole network each); the stream's own training."
    )
    Settings = PNNSettings
    settings: PNNSettings
    search_space: ClassVar = {
        "training.learning_rate": Uniform(0.001, 0.3, log=True),
        "method.column": Choice((0.1, 0.2, 0.5, 1.0)),
    }

    def __init__(self, blueprint: Blueprint, settings: PNNSettings, seed: int, device: torch.device = CPU) -> None:
        inner = tuple(replace(each, size=max(1, round(each.size * settings.column))) for each in blueprint.hidden)
        column = replace(blueprint, layers=(blueprint.input, *inner, blueprint.output))
        super().__init__(column, settings, seed, device)

    def begin_task(self, task: Task, data: Samples) -> None:
        for layer in self.blueprint.hidden if self.tasks_learned else ():
            self.add_units(layer.name, layer.size, f"column of {layer.name}")
        super().begin_task(task, data)
        for link in self.blueprint.links:
            self.values[link.name].data[~self._connected(link)] = 0.0
        self._freeze_columns()

    def resume_task(self, task: Task, data: Samples, tensors: Mapping[str, Tensor]) -> None:
        self._freeze_columns()

    def _freeze_columns(self) -> None:
        newest = {p.name: self._columns(p.name) == self.tasks_learned for p in self.blueprint.layers}
        free = {key: newest[p.name] for p in self.blueprint.layers for key in p.keys()}
        for link in self.blueprint.links:
            free[link.name] = newest[link.target].view(-1, 1, *(1 for _ in link.kernel))
        self.freeze(free)

    def _columns(self, layer: str) -> Tensor:
        """The column of each unit; inputs stand before all of them."""
        if layer == self.blueprint.output.name:
            return torch.repeat_interleave(torch.tensor([len(classes) for classes in self.classes], dtype=torch.long))
        size = next(each.size for each in self.blueprint.layers if each.name == layer)
        if layer == self.blueprint.input.name:
            return torch.full((size,), -1)
        return torch.arange(max(1, len(self.classes)) * size) // size

    def _connected(self, link: Link) -> Tensor:
        """Which connections there may be, (targets, sources): none leads back to an earlier column."""
        return self._columns(link.target)[:, None] >= self._columns(link.source)

    def layers(self) -> list[LayerUsage]:
        into = {layer.name: 0 for layer in super().layers()}
        for link in self.blueprint.links:
            into[link.target] += int(self._connected(link).sum())
        return [replace(layer, connections=into[layer.name]) for layer in super().layers()]

    def network(self) -> dict[str, Tensor]:
        """Of the weights only what is connected."""
        whole = super().network()
        return whole | {
            f"values/{link.name}": whole[f"values/{link.name}"][self._connected(link)] for link in self.blueprint.links
        }

    def load_model(self, tensors: Mapping[str, Tensor]) -> None:
        whole = dict(tensors)
        for link in self.blueprint.links:
            connected = self._connected(link)
            weights = torch.zeros(*connected.shape, *link.kernel)
            weights[connected] = tensors[f"values/{link.name}"].cpu()
            whole[f"values/{link.name}"] = weights
        super().load_model(whole)
