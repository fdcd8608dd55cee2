"""Removing classes from what a sparse method has learned."""

from collections.abc import Mapping
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from spacenet.errors import SettingsError
from spacenet.methods.shared.places import Places, take_places
from spacenet.space.compaction import drop_unread, shrink_layers
from spacenet.space.removal import release, remove_outputs

if TYPE_CHECKING:
    from spacenet.methods.shared.sparse import SparseMethod


def remove_classes(method: "SparseMethod", outputs: Tensor) -> None:
    """Remove these outputs, what is kept of their classes, and the space of tasks that have no other classes.

    Everything that belongs to other classes keeps its bits, and so do their scores, see `Places`. Raises
    `SettingsError` where that is not possible; then nothing has changed.
    """
    gone = torch.zeros(method.classes[-1].stop, dtype=torch.bool)
    gone[outputs] = True
    left = [int((~gone[own.start : own.stop]).sum()) for own in method.classes]
    emptied = [task for task, own in enumerate(method.classes) if len(own) and not left[task]]
    _check(method, emptied)
    removed = method.places.remove(gone, method.classes, {} if method.places else method.units_packed())
    method.keep_classes((~gone).nonzero().flatten())
    remove_outputs(method.ledger, outputs, [method.classes[task] for task in method.tasks_described])
    method.classes = [range(start, stop) for start, stop in pairwise(accumulate(left, initial=0))]
    output = method.blueprint.output.name
    for task in emptied:
        ends = {output: torch.arange(method.ledger.size(output))} | method.units_read()
        release(method.ledger, task, ends, method.rng("released", task))
    method.places = removed
    method.invalidate()


def check_places(method: "SparseMethod", state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """What else is kept besides the network, once the places of classes are possible; otherwise `ValueError`."""
    sizes = {layer.name: method.ledger.size(layer.name) for layer in method.blueprint.hidden}
    if method.packs_tasks_apart:
        sizes = {f"{task}/{name}": size for task in range(len(method.classes)) for name, size in sizes.items()}
    return take_places(state, method.classes, sizes)


def compact(method: "SparseMethod") -> None:
    """Drop what no output reads: connections, reserved units, and units that were added and are not used."""
    method.places = Places()
    output = method.blueprint.output.name
    drop_unread(method.ledger, {output: torch.arange(method.ledger.size(output))} | method.units_read())
    moved = shrink_layers(method.ledger, {layer.name: method.least_size(layer) for layer in method.blueprint.hidden})
    method.move_units(moved)
    method.invalidate()


def _check(method: "SparseMethod", emptied: list[int]) -> None:
    if method.settings.balance != "none":
        raise SettingsError(
            f"no class can be removed where scores are balanced ({method.settings.balance}): the others' would change",
            setting="balance",
        )
    if method.reads_first_task and 0 in emptied:
        raise SettingsError(
            "this is the last class of the first task, and class statistics are computed on the features of that task; "
            "no answer would be left as it is. Fit a new model without it instead."
        )
