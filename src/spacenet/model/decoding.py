"""From the content of a model file to a model, checking everything: the file may be damaged or malicious."""

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spacenet import __version__
from spacenet.config.model import ModelConfig
from spacenet.config.settings import from_plain
from spacenet.data.preprocessing import Array, Normalization
from spacenet.errors import ModelFileError, SpacenetError
from spacenet.methods.base import NETWORK, PROGRESS
from spacenet.model.encoding import EXTRA, FORMAT, Arrays, Header, source_type
from spacenet.model.model import Model, model_method
from spacenet.nets import build_net
from spacenet.space.blueprint import Blueprint, Link, UnitValue
from spacenet.space.cut import marks, numbers, sizes, upstream
from spacenet.space.ledger import FREE, Connections, Ledger

MAX_PACKED = 2**24
"""Numbers that a packed network may have, however few connections there are; beyond that, `SPARSEST` times those."""
SPARSEST = 256
MAX_TASKS = np.iinfo(np.int16).max


def decode(text: str, arrays: Arrays) -> Model:
    """The model that a header's text and arrays describe."""
    header = _header(text)
    with _as_model_file_error():
        config = ModelConfig.from_plain(header.config)
        model_method(config.method)
        _expect(len(config.net.hidden) <= len(arrays), "more layers than it holds")
        normalization = _normalization(header, arrays)
        blueprint = build_net(config.net, header.input_shape)
        _check_sizes(blueprint, arrays, sum(map(len, header.tasks)))
        tasks = [tuple(task) for task in header.tasks]
        ledger = _read_ledger(blueprint, arrays, len(tasks))
        _check_packed(ledger)
        model = Model(config, header.input_shape, normalization, tasks, header.metrics)
        _load_state(model, ledger, arrays)
        return model


def _normalization(header: Header, arrays: Arrays) -> Normalization:
    shape = header.input_shape
    mean, std = arrays.get("normalization/mean"), arrays.get("normalization/std")
    if mean is None or std is None or not shape or mean.shape != shape or std.shape not in (shape, (1,)):
        raise ModelFileError("not a usable model file: input shape and normalization do not agree")
    for part in (mean, std):
        _expect(part.dtype == np.float32 and bool(np.isfinite(part).all()), "its normalization is not made of numbers")
    _expect(mean.size > 0 and bool((std > 0).all()), "its standard deviation is not above 0")
    scale = torch.from_numpy(std)
    return Normalization(header.scale, torch.from_numpy(mean), scale if std.shape == shape else scale[0])


def _header(text: str) -> Header:
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"damaged: its header cannot be read ({error})") from error
    version = values.get("format") if isinstance(values, dict) else None
    if not isinstance(version, int) or isinstance(version, bool):
        raise ModelFileError("not a usable model file (its header names no format)")
    if version != FORMAT:
        age, remedy = ("a newer", "upgrade") if version > FORMAT else ("an older", "train it again")
        raise ModelFileError(
            f"written by {age} spacenet, in format {version}; this one ({__version__}) reads format {FORMAT}: {remedy}"
        )
    with _as_model_file_error():
        header = from_plain(Header, values, "its header")
        _expect(math.isfinite(header.scale), "its scale is not a number")
        _expect(bool(header.tasks) and all(header.tasks), "a task without classes")
        _expect(len(header.tasks) <= MAX_TASKS, "more tasks than possible")
        _expect(all(label == label for task in header.tasks for label in task), "a label is not a number")
        _expect(all(len(set(map(repr, task))) == len(task) for task in header.tasks), "a class twice in one task")
        return header


def _check_sizes(blueprint: Blueprint, arrays: Arrays, outputs: int) -> None:
    """All arrays must be there with the right type and length, before anything is made of that size."""
    names = {"normalization/mean", "normalization/std"}
    lengths = {blueprint.input.name: blueprint.input.size, blueprint.output.name: outputs}
    for layer in blueprint.hidden:
        name = f"state/{layer.name}"
        names.add(name)
        state = arrays.get(name)
        right = state is not None and state.ndim == 1 and state.dtype == np.int16 and len(state) >= layer.size
        _expect(right, f"{name} is missing or of the wrong size")
        assert state is not None
        lengths[layer.name] = len(state)
    for layer in blueprint.layers:
        for key in layer.keys():
            names.add(f"units/{key}")
            _expect_array(arrays, f"units/{key}", np.float32, (lengths[layer.name],))
    for link in blueprint.links:
        rows, source, value = (f"links/{link.name}/{part}" for part in ("rows", "source", "value"))
        names |= {rows, source, value}
        count = len(arrays[source]) if source in arrays and arrays[source].ndim == 1 else 0
        _expect_array(arrays, source, source_type(lengths[link.source]), (count,))
        _expect_array(arrays, value, np.float32, (count, *link.kernel))
        _expect(rows in arrays and arrays[rows].ndim == 2, f"{rows} is missing or of the wrong size")
        _expect_array(arrays, rows, np.uint32, (len(arrays[rows]), 3))
    unknown = {name for name in arrays if not name.startswith(EXTRA)} - names
    _expect(not unknown, f"unknown content ({', '.join(sorted(unknown)[:3])})")


def _expect_array(arrays: Arrays, name: str, kind: Any, shape: tuple[int, ...]) -> None:
    array = arrays.get(name)
    _expect(
        array is not None and array.dtype == kind and array.shape == shape, f"{name} is missing or of the wrong size"
    )


def _read_ledger(blueprint: Blueprint, arrays: Arrays, tasks: int) -> Ledger:
    """The ledger that the file holds, checking what a ledger must never hold."""
    ledger = Ledger(blueprint)
    for layer in blueprint.layers:
        name = layer.name
        state = arrays.get(f"state/{name}")
        if state is not None:
            _expect(
                bool(((state >= FREE) & (state < tasks)).all()), f"{name} is reserved by a task that does not exist"
            )
            ledger.state[name] = torch.from_numpy(state)
        elif name == blueprint.output.name:
            ledger.grow(name, len(arrays[f"units/{name}.bias"]))
        for key, kind in layer.keys().items():
            ledger.units[key] = _finite(arrays[f"units/{key}"], key, kind)
    for link in blueprint.links:
        ledger.connections[link.name] = _connections(link, ledger, arrays, tasks)
    return ledger


def _finite(array: Array, name: str, kind: UnitValue) -> Tensor:
    _expect(bool((np.isfinite(array) & (array >= kind.least)).all()), f"{name} has values that are not possible")
    return torch.from_numpy(array)


def _connections(link: Link, ledger: Ledger, arrays: Arrays, tasks: int) -> Connections:
    rows, source, value = (arrays[f"links/{link.name}/{part}"] for part in ("rows", "source", "value"))
    owners, targets, counts = rows.astype(np.int64).T
    sources, size = ledger.size(link.source), ledger.size(link.target)
    _expect(int(counts.sum()) == len(source) and bool((counts > 0).all()), f"{link.name}: rows do not add up")
    _expect(bool((owners < tasks).all()), f"{link.name}: an owner that does not exist")
    _expect(bool((targets < size).all()) and bool((source < sources).all()), f"{link.name}: a unit that does not exist")
    _expect(bool((np.diff(owners * size + targets) > 0).all()), f"{link.name}: rows out of order")
    _expect(bool(np.isfinite(value).all()), f"{link.name}: a weight that is not a number")
    owner, target = np.repeat(owners, counts), np.repeat(targets, counts)
    position = target * sources + source.astype(np.int64)
    _expect(len(np.unique(position)) == len(position), f"{link.name}: a connection twice")
    state = ledger.state[link.target].numpy()[target]
    _expect(bool(((state == FREE) | (owner <= state)).all()), f"{link.name}: a connection into a unit reserved before")
    return Connections(
        torch.from_numpy(source.astype(np.int32)),
        torch.from_numpy(target.astype(np.int32)),
        torch.from_numpy(owner.astype(np.int16)),
        torch.from_numpy(value),
    )


def _check_packed(ledger: Ledger) -> None:
    """A few connections between very many units would make a huge network when packed."""
    ends = {p.name: torch.arange(ledger.size(p.name)) for p in (ledger.blueprint.input, ledger.blueprint.output)}
    size = sizes(ledger, numbers(upstream(ledger, marks(ledger, ends))))
    packed = sum(size[link.target] * size[link.source] * math.prod(link.kernel) for link in ledger.blueprint.links)
    held = sum(connections.value.numel() for connections in ledger.connections.values())
    most = max(MAX_PACKED, SPARSEST * held)
    _expect(packed <= most, f"its {held:,} weights lie so far apart that the network would take {packed:,} numbers")


def _load_state(model: Model, ledger: Ledger, arrays: Arrays) -> None:
    """Give the method its ledger and what it keeps besides, once it has found nothing wrong with it."""
    held = {name.removeprefix(EXTRA): array for name, array in arrays.items() if name.startswith(EXTRA)}
    _expect(all(array.dtype == np.float32 for array in held.values()), "class statistics that are not numbers")
    extra, method = {name: torch.from_numpy(array) for name, array in held.items()}, model.method
    state = {
        PROGRESS + "classes": torch.tensor([len(task) for task in model.tasks], dtype=torch.int32),
        PROGRESS + "tasks": torch.tensor(len(model.tasks), dtype=torch.int32),
        **{NETWORK + name: tensor for name, tensor in ledger.tensors().items()},
    }
    method.load_state(state)
    try:
        method.check_extra(extra, model.input_shape)
    except ValueError as error:
        raise ModelFileError(f"not a usable model file: {error}") from error
    if extra:
        method.load_state({**state, **extra})


def _expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ModelFileError(f"not a usable model file: {otherwise}")


@contextmanager
def _as_model_file_error() -> Iterator[None]:
    """Settings in the file that cannot work are a fault of the file."""
    try:
        yield
    except ModelFileError:
        raise
    except SpacenetError as error:
        raise ModelFileError(f"not a usable model file: {error}") from error
