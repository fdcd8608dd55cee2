"""Progressive neural networks: a new column of units for each task, with inputs from all earlier, frozen ones."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import torch
from annotated_types import Gt, Le
from torch import Tensor

from spacenet.methods.base import Choice, Samples, Task
from spacenet.methods.shared.dense import PhantomSettings
from spacenet.methods.shared.task_models import GrowingMethod, scale_hidden
from spacenet.space.blueprint import Blueprint, Link, Params


@dataclass(frozen=True)
class PNNSettings(PhantomSettings):
    """How much a task adds to the network."""

    column: Annotated[float, Gt(0), Le(1), Choice((0.1, 0.2, 0.5, 1.0))] = 0.2
    """Width of a task's column as a fraction of each layer's. 1 is published: a whole network for each task. With 0.2,
    five tasks together have as many units as one network of the methods that do not grow."""


class PNN(GrowingMethod):
    """Lateral connections lead from earlier columns to later ones, never back (equation 1).

    So a link's weights are block-triangular; the zeros are neither trained nor stored. The paper's adapters (equation
    2), which make wide lateral layers narrower, are left out.
    """

    name = "pnn"
    strategy = "Architectural"
    reference = "Rusu, Rabinowitz, Desjardins, Soyer, Kirkpatrick, Kavukcuoglu, Pascanu, Hadsell: Progressive Neural \
Networks. arXiv:1606.04671, 2016"
    settings_from = (
        "The column's width is chosen so that five tasks together have one network's units (published: "
        "a whole network each); the stream's own training."
    )
    settings: PNNSettings

    @classmethod
    def suit_network(cls, blueprint: Blueprint, settings: PNNSettings) -> Blueprint:
        return scale_hidden(blueprint, settings.column)

    def begin_task(self, task: Task, data: Samples) -> None:
        for layer in self.blueprint.hidden if self.tasks_learned else ():
            self.add_units(layer.name, layer.size, f"column of {layer.name}")
        super().begin_task(task, data)

    def add_outputs(self, count: int) -> None:
        super().add_outputs(count)
        for link in self.blueprint.links:
            self.params[link.name].data[~self.connected(link)] = 0.0

    def trainable_masks(self) -> dict[str, Tensor]:
        """The newest column."""
        return self.unit_masks({p.name: self._columns(p.name) == self.tasks_learned for p in self.blueprint.layers})

    def _columns(self, layer: str) -> Tensor:
        """The column of each unit; −1 for inputs, which all columns read."""
        if layer == self.blueprint.output.name:
            return torch.repeat_interleave(torch.tensor([len(classes) for classes in self.classes], dtype=torch.long))
        size = next(each.size for each in self.blueprint.layers if each.name == layer)
        if layer == self.blueprint.input.name:
            return torch.full((size,), -1)
        return torch.arange(max(1, len(self.classes)) * size) // size

    def connected(self, link: Link) -> Tensor:
        """Which connections exist, (targets, sources): none leads back to an earlier column."""
        return self._columns(link.target)[:, None] >= self._columns(link.source)

    def saved_sizes(self) -> dict[str, int]:
        sizes = super().saved_sizes()
        for layer in self.blueprint.hidden:
            columns = [layer.size * (task + 1) for task in range(len(self.classes))]
            if self.widths[layer.name].tolist() != columns:
                raise ValueError(f"the units of tasks: {layer.name} does not have a column for each task")
        return sizes

    def saved_shapes(self, sizes: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
        counts = {link.name: (self._count_connected(link), *link.kernel) for link in self.blueprint.links}
        return super().saved_shapes(sizes) | counts

    def _count_connected(self, link: Link) -> int:
        """How many connections of a link exist."""
        tasks, size = range(len(self.classes)), {layer.name: layer.size for layer in self.blueprint.layers}
        to_output, from_input = link.target == self.blueprint.output.name, link.source == self.blueprint.input.name
        targets = [len(self.classes[task]) if to_output else size[link.target] for task in tasks]
        return sum(count * size[link.source] * (1 if from_input else task + 1) for task, count in enumerate(targets))

    def params_to_save(self) -> dict[str, Tensor]:
        """Of the weights only what is connected."""
        whole = super().params_to_save()
        return whole | {link.name: whole[link.name][self.connected(link)] for link in self.blueprint.links}

    def load_params(self, params: Params) -> None:
        whole = dict(params)
        for link in self.blueprint.links:
            connected = self.connected(link)
            whole[link.name] = torch.zeros(*connected.shape, *link.kernel)
            whole[link.name][connected] = params[link.name].cpu()
        super().load_params(whole)
