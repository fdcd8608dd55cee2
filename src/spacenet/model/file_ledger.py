"""How a model file holds a network that is divided among tasks, in about as many bytes as its connections need.

Connections are sorted by owner, target and source. Each link has a table of rows (owner, target, count), and for each
connection its source, in as few bytes as the number of sources needs, and its value. What the method keeps besides,
such as class statistics, is stored under extra/ as it is.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from spacenet.data.preprocessing import Array
from spacenet.methods.base import NETWORK, PROGRESS, Method
from spacenet.methods.shared.removal import check_places
from spacenet.methods.shared.sparse import SparseMethod
from spacenet.model.file_parts import Arrays, expect
from spacenet.space.blueprint import Blueprint, Link
from spacenet.space.ledger import FREE, Connections, Ledger
from spacenet.space.pack import packed_numbers

if TYPE_CHECKING:
    from spacenet.model.model import Model

EXTRA = "extra/"
MAX_PACKED = 2**24
"""Numbers that a packed network may have, however few connections there are; beyond that, `SPARSEST` times those."""
SPARSEST, MANY_WEIGHTS = 256, 2**18
"""Networks of many tasks, which have more weights than the second, are packed sparsely."""


def encode_ledger(method: Method) -> Arrays:
    """What a method keeps, as arrays."""
    ledger = method.ledger
    arrays = {f"state/{layer.name}": ledger.state[layer.name].numpy() for layer in ledger.blueprint.hidden}
    arrays |= {f"units/{key}": values.numpy() for key, values in ledger.units.items()}
    for link in ledger.blueprint.links:
        arrays |= _columns(link, ledger)
    return arrays | {EXTRA + name: tensor.numpy() for name, tensor in method.extra_state().items()}


def _columns(link: Link, ledger: Ledger) -> Arrays:
    held = ledger.connections[link.name]
    owner, target, source = (column.numpy().astype(np.int64) for column in (held.owner, held.target, held.source))
    order = np.lexsort((source, target, owner))
    rows, counts = np.unique(np.stack([owner[order], target[order]], axis=1), axis=0, return_counts=True)
    table = np.concatenate([rows, counts[:, None]], axis=1)
    return {
        f"links/{link.name}/rows": table.astype(np.uint32),
        f"links/{link.name}/source": source[order].astype(source_type(ledger.size(link.source))),
        f"links/{link.name}/value": held.value.numpy()[order],
    }


def source_type(sources: int) -> "np.dtype[Any]":
    """The smallest type that can number this many sources."""
    return np.min_scalar_type(max(0, sources - 1))


def read_ledger(blueprint: Blueprint, arrays: Arrays, tasks: int, outputs: int) -> Ledger:
    """The ledger that the file holds. Nothing is made before an array of its size was found in the file."""
    left = {name: array for name, array in arrays.items() if not name.startswith(EXTRA)}

    def take(name: str, kind: Any, *shape: int | None) -> Array:
        array = left.pop(name, np.empty(0, object))
        fits = len(array.shape) == len(shape) and all(n in (None, m) for n, m in zip(shape, array.shape, strict=True))
        expect(array.dtype == kind and fits, f"{name} is missing or of the wrong size")
        return array

    state = {}
    for layer in blueprint.layers:
        name, size = layer.name, outputs if layer is blueprint.output else layer.size
        if layer not in blueprint.hidden:
            state[name] = torch.full((size,), FREE, dtype=torch.int16)
            continue
        held = take(f"state/{name}", np.int16, None)
        expect(len(held) >= size, f"state/{name} is missing or of the wrong size")  # more where it has grown
        expect(bool(((held >= FREE) & (held < tasks)).all()), f"{name} is reserved by a task that does not exist")
        state[name] = torch.from_numpy(held)
    units = {}
    for key, (layer, value) in blueprint.unit_values().items():
        values = take(f"units/{key}", np.float32, len(state[layer.name]), *value.shape)
        possible = bool((np.isfinite(values) & (values >= value.least)).all())
        expect(possible, f"{key} has values that are not possible")
        units[key] = torch.from_numpy(values)
    connections = {link.name: _read_link(link, state, take, tasks) for link in blueprint.links}
    expect(not left, f"unknown content ({', '.join(sorted(left)[:3])})")
    ledger = Ledger(blueprint)
    ledger.state, ledger.units, ledger.connections = state, units, connections
    return ledger


def _read_link(link: Link, state: dict[str, Tensor], take: Callable[..., Array], tasks: int) -> Connections:
    sources, size = len(state[link.source]), len(state[link.target])
    rows = take(f"links/{link.name}/rows", np.uint32, None, 3)
    source = take(f"links/{link.name}/source", source_type(sources), None)
    value = take(f"links/{link.name}/value", np.float32, len(source), *link.kernel)
    owners, targets, counts = rows.astype(np.int64).T
    expect(int(counts.sum()) == len(source) and bool((counts > 0).all()), f"{link.name}: rows do not add up")
    expect(bool((owners < tasks).all()), f"{link.name}: an owner that does not exist")
    expect(bool((targets < size).all()) and bool((source < sources).all()), f"{link.name}: a unit that does not exist")
    expect(bool((np.diff(owners * size + targets) > 0).all()), f"{link.name}: rows out of order")
    expect(bool(np.isfinite(value).all()), f"{link.name}: a weight that is not a number")
    owner, target = np.repeat(owners, counts), np.repeat(targets, counts)
    position = target * sources + source.astype(np.int64)
    expect(len(np.unique(position)) == len(position), f"{link.name}: a connection twice")
    until = state[link.target].numpy()[target]
    expect(bool(((until == FREE) | (owner <= until)).all()), f"{link.name}: a connection into a unit reserved before")
    columns = (source.astype(np.int32), target.astype(np.int32), owner.astype(np.int16), value)
    return Connections(*map(torch.from_numpy, columns))


def check_packed(ledger: Ledger) -> None:
    """A few connections between very many units would make a huge network when packed."""
    _check_size(packed_numbers(ledger, sparse=_count_weights(ledger) > MANY_WEIGHTS), ledger)


def _check_size(packed: int, ledger: Ledger) -> None:
    held = _count_weights(ledger)
    most = max(MAX_PACKED, SPARSEST * held)
    expect(packed <= most, f"its {held:,} weights lie so far apart that the network would take {packed:,} numbers")


def _count_weights(ledger: Ledger) -> int:
    return sum(connections.value.numel() for connections in ledger.connections.values())


def load_ledger(model: "Model", ledger: Ledger, arrays: Arrays) -> None:
    """Give the method its ledger and what it keeps besides, once it has found nothing wrong with it."""
    held = {name.removeprefix(EXTRA): array for name, array in arrays.items() if name.startswith(EXTRA)}
    numbers = (np.float16, np.float32, np.float64)
    expect(all(array.dtype in numbers for array in held.values()), "class statistics that are not numbers")
    extra, method = {name: torch.from_numpy(array) for name, array in held.items()}, model.method
    state = {
        PROGRESS + "classes": torch.tensor([len(task) for task in model.tasks], dtype=torch.int32),
        PROGRESS + "tasks": torch.tensor(len(model.tasks), dtype=torch.int32),
        **{NETWORK + name: tensor for name, tensor in ledger.tensors().items()},
    }
    method.load_state(state)
    assert isinstance(method, SparseMethod)
    method.check_state(check_places(method, extra), model.input_shape)
    if extra:
        method.load_state({**state, **extra})
    if method.places:
        _check_size(method.placed_numbers(), ledger)
