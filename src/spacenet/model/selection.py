"""The units that each task selected. They are not stored: they follow from the seed, so the allocation is repeated."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

import torch

from spacenet.data.stream import Task
from spacenet.errors import SpacenetError
from spacenet.model.model import Model
from spacenet.space.ledger import FREE, Connections, Ledger
from spacenet.space.pack import Units

if TYPE_CHECKING:
    from spacenet.methods.shared.sparse import SparseMethod

Allocation = tuple[Units, dict[str, Connections]]


def repeat_allocations(model: Model) -> Iterator[Allocation]:
    """For each task the units that it selected, and its connections before training."""
    method, learned, first = cast("SparseMethod", model.build()), model.method.ledger, 0
    for number, labels in enumerate(model.tasks):
        no_data: Any = None  # the allocation uses no samples
        task = Task(number, labels, range(first, first + len(labels)), no_data)
        method.plan.carry_out(method.ledger, number)
        yield method.allocate(task)
        method.ledger.grow(method.blueprint.output.name, len(labels))
        _enter_task(method.ledger, learned, number)
        method.tasks_learned, first = number + 1, task.classes.stop


def _enter_task(ledger: Ledger, learned: Ledger, number: int) -> None:
    """Let a ledger with the tasks before this one hold what this one learned, too."""
    for name, held in learned.connections.items():
        ledger.connections[name] = held[held.owner <= number]
    for name, state in ledger.state.items():
        after = learned.state[name][: len(state)]
        state.copy_(torch.where(after <= number, after, FREE))


def count_never_selected(model: Model) -> dict[str, int] | None:
    """For each hidden layer the units that no task ever selected: what the paper calls unused.

    They are fewer than the units without connections where rewiring moved all connections of a unit elsewhere. None
    if the allocation cannot be repeated, because settings were changed between tasks.
    """
    if not all(model.tasks):  # the space of a task was given back
        return None
    ledger = model.method.ledger
    names = [layer.name for layer in ledger.blueprint.hidden]
    selected = {name: torch.zeros(ledger.size(name), dtype=torch.bool) for name in names}
    try:
        for number, (selection, _) in enumerate(repeat_allocations(model)):
            if not all(_contains(selection, name, ledger, number) for name in names):
                return None
            for name in names:
                selected[name][selection[name]] = True
    except (SpacenetError, IndexError):
        return None
    return {name: int((~each).sum()) for name, each in selected.items()}


def _contains(selection: Units, layer: str, ledger: Ledger, task: int) -> bool:
    """Whether the selection has all units of a layer that the task reserved, or that its connections enter."""
    entered = [
        held.target[held.owner == task].long()
        for link in ledger.blueprint.links
        if link.target == layer and (held := ledger.connections[link.name])
    ]
    own = (ledger.state[layer] == task).nonzero().flatten()
    return bool(torch.isin(torch.cat([own, *entered]), selection[layer]).all())
