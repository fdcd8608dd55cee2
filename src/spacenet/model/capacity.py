"""Whose the units of each hidden layer are: each task's own, shared ones, and unused ones."""

from collections.abc import Sequence
from dataclasses import dataclass

from spacenet.model.model import Model
from spacenet.space.ledger import FREE


@dataclass(frozen=True)
class LayerAreas:
    """The units of a hidden layer: reserved, shared and unused ones add up to all of them."""

    name: str
    units: int
    reserved: Sequence[int]  # by each task, for good
    shared: int  # in use, but not reserved: later tasks may use them too
    unused: int

    @property
    def areas(self) -> list[tuple[str, int]]:
        """The parts of the layer from left to right: name and number of units."""
        tasks = [(f"task {number}", count) for number, count in enumerate(self.reserved, 1)]
        return [area for area in (*tasks, ("shared", self.shared), ("unused", self.unused)) if area[1]]


def layer_areas(model: Model) -> list[LayerAreas]:
    """The hidden layers, counted in the model's ledger."""
    ledger, layers = model.method.ledger, []
    for layer in ledger.blueprint.hidden:
        state, used = ledger.state[layer.name], ledger.used(layer.name)
        reserved = [int((state == task).sum()) for task in range(len(model.tasks))]
        shared, unused = (int(part.sum()) for part in ((state == FREE) & used, (state == FREE) & ~used))
        layers.append(LayerAreas(layer.name, len(state), reserved, shared, unused))
    return layers
