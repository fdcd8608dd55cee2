"""The ledger: which task owns what. Stored sparsely: memory grows with connections, never with width squared."""

from collections.abc import Mapping
from dataclasses import dataclass, fields

import torch
from torch import Generator, Tensor

from spacenet.space.blueprint import Blueprint, Link
from spacenet.utils.tensors import check_finite, check_shapes

FREE = -1  # the state of a unit that no task has reserved; otherwise the state is the number of the task


@dataclass
class Connections:
    """Connections of one link, each with its position, its value and the task that owns it."""

    source: Tensor  # (m,) int32
    target: Tensor  # (m,) int32
    owner: Tensor  # (m,) int16
    value: Tensor  # (m, *kernel) float32

    def __len__(self) -> int:
        return len(self.owner)

    def __getitem__(self, rows: Tensor) -> "Connections":
        return Connections(self.source[rows], self.target[rows], self.owner[rows], self.value[rows])

    def to_tensors(self, prefix: str) -> dict[str, Tensor]:
        return {prefix + field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], prefix: str) -> "Connections":
        return cls(*(tensors[prefix + field.name].clone() for field in fields(cls)))

    @classmethod
    def concat(cls, a: "Connections", b: "Connections") -> "Connections":
        return cls(*(torch.cat([getattr(a, field.name), getattr(b, field.name)]) for field in fields(cls)))


class Ledger:
    """The network between tasks: the units' states, their values, and all connections."""

    def __init__(self, blueprint: Blueprint) -> None:
        self.blueprint = blueprint
        self.state = {layer.name: torch.full((layer.size,), FREE, dtype=torch.int16) for layer in blueprint.layers}
        values = blueprint.unit_values().items()
        self.units = {key: value.start(layer.size) for key, (layer, value) in values}
        ends, owner = torch.zeros(0, dtype=torch.int32), torch.zeros(0, dtype=torch.int16)
        links = blueprint.links
        self.connections = {link.name: Connections(ends, ends, owner, torch.zeros(0, *link.kernel)) for link in links}

    def size(self, layer: str) -> int:
        return len(self.state[layer])

    def free(self, layer: str) -> Tensor:
        """The units that no task has reserved, in ascending order."""
        return (self.state[layer] == FREE).nonzero().flatten()

    def initialize(self, rng: Generator) -> None:
        """Give all units their random initial values, where they have any."""
        for key, (layer, value) in self.blueprint.unit_values().items():
            if value.init is not None:
                self.units[key] = value.start(self.size(layer.name), rng)

    def grow(self, layer: str, more: int, rng: Generator | None = None) -> Tensor:
        """Add free units without connections; returns their numbers. What the network computes does not change."""
        size = self.size(layer)
        self.state[layer] = torch.cat([self.state[layer], torch.full((more,), FREE, dtype=torch.int16)])
        for key, value in next(each for each in self.blueprint.layers if each.name == layer).keys().items():
            self.units[key] = torch.cat([self.units[key], value.start(more, rng)])
        return torch.arange(size, size + more)

    def add(self, link: Link, new: Connections) -> None:
        """Enter a task's connections; `ValueError` unless each lies where no other does and ends in a free unit."""
        if bool((self.state[link.target][new.target.long()] != FREE).any()):
            raise ValueError(f"{link.name}: a reserved unit never gains an ingoing connection")
        held, entered = self.connections[link.name], torch.zeros(self.size(link.target), dtype=torch.bool)
        entered[new.target.long()] = True
        near = entered[held.target.long()]  # only these could lie where a new one does
        target, source = (torch.cat([getattr(held, end)[near], getattr(new, end)]) for end in ("target", "source"))
        position = target.long() * self.size(link.source) + source.long()
        if len(torch.unique(position)) < len(position):
            raise ValueError(f"{link.name}: a connection has one owner")
        self.connections[link.name] = Connections.concat(held, new)

    def reserve(self, layer: str, units: Tensor, task: int) -> None:
        if bool((self.state[layer][units] != FREE).any()):
            raise ValueError(f"{layer}: only free units can be reserved")
        self.state[layer][units] = task

    def dead(self, link: Link, units: Tensor) -> Tensor:
        """Which of these units, some of which may still have to be added, no connection of the link enters."""
        count = self.connections[link.name].target.bincount(minlength=self.size(link.target) + len(units))
        return count[units] == 0

    def used(self, layer: str) -> Tensor:
        """For each unit, whether any connection enters or leaves it."""
        used = torch.zeros(self.size(layer), dtype=torch.bool)
        for link in self.blueprint.links:
            for end in ("source", "target"):
                if getattr(link, end) == layer:
                    used[getattr(self.connections[link.name], end).long()] = True
        return used

    def ingoing(self, layer: str) -> Tensor:
        """For each unit, how many connections enter it."""
        count = torch.zeros(self.size(layer), dtype=torch.long)
        for link in self.blueprint.links:
            if link.target == layer:
                count += self.connections[link.name].target.long().bincount(minlength=len(count))
        return count

    def tensors(self) -> dict[str, Tensor]:
        """Everything the ledger holds, by name, for a file."""
        tensors = {f"state/{name}": state for name, state in self.state.items()}
        tensors |= {f"units/{key}": values for key, values in self.units.items()}
        for name, connections in self.connections.items():
            tensors |= connections.to_tensors(f"links/{name}/")
        return tensors

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        self.state = {name: tensors[f"state/{name}"].clone() for name in self.state}
        self.units = {key: tensors[f"units/{key}"].clone() for key in self.units}
        self.connections = {name: Connections.from_tensors(tensors, f"links/{name}/") for name in self.connections}


def unit_values(ledger: Ledger) -> dict[str, Tensor]:
    """What `as_of` needs of a moment: a copy of the values of all units. Connections have owners and never change."""
    return {key: values.clone() for key, values in ledger.units.items()}


def as_of(ledger: Ledger, tasks: int, units: Mapping[str, Tensor]) -> Ledger:
    """The ledger as it was after this many tasks; `units` is what `unit_values` returned then."""
    view = Ledger(ledger.blueprint)
    for key, (layer, _) in ledger.blueprint.unit_values().items():
        view.units[key] = units[key].clone()
        view.state[layer.name] = torch.full((len(units[key]),), FREE, dtype=torch.int16)
    view.connections = {name: held[held.owner < tasks] for name, held in ledger.connections.items()}
    return view


def check_unit_values(ledger: Ledger, tasks: int, classes: int, units: Mapping[str, Tensor]) -> None:
    """Raise `ValueError` if `unit_values` cannot have returned this after this many tasks and classes."""
    blueprint, what = ledger.blueprint, "the first view of the network"
    lengths = {blueprint.input.name: blueprint.input.size, blueprint.output.name: classes}
    for layer in blueprint.hidden:
        lengths[layer.name] = next((len(units[key]) for key in layer.keys() if key in units and units[key].dim()), 0)
        if not layer.size <= lengths[layer.name] <= ledger.size(layer.name):
            raise ValueError(f"{what}: {layer.name} cannot have had {lengths[layer.name]} units")
    values = blueprint.unit_values().items()
    check_shapes(units, {key: (lengths[layer.name], *value.shape) for key, (layer, value) in values}, what)
    check_finite(units, {key: value.least for key, (_, value) in values}, what)
    for link in blueprint.links:
        held = ledger.connections[link.name]
        seen = held[held.owner < tasks]
        if bool((seen.source >= lengths[link.source]).any() | (seen.target >= lengths[link.target]).any()):
            raise ValueError(f"{what}: {link.name} has a connection of a unit that did not exist yet")
