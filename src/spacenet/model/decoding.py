"""Making a model of what a model file holds, checking everything: nothing that a file says is taken on trust."""

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spacenet import __version__
from spacenet.config.plain import from_plain
from spacenet.data.preprocessing import Array, Normalization, NormalizationSpec
from spacenet.errors import ModelFileError, SpacenetError
from spacenet.methods import get_method
from spacenet.methods.shared.sparse import SparseMethod
from spacenet.model.encoding import EXTRA, FORMAT, Arrays, Facts, source_type
from spacenet.model.model import Model, Recipe
from spacenet.space.blueprint import Blueprint, Link, UnitValue
from spacenet.space.cut import marks, numbers, sizes, upstream
from spacenet.space.ledger import FREE, Connections, Ledger

MAX_PACKED = 2**24
"""Numbers that a network may have when packed, however few connections it has; beyond, `SPARSEST` times those."""
SPARSEST = 256
MAX_TASKS = np.iinfo(np.int16).max


def decode(text: str, arrays: Arrays) -> Model:
    """The model that a header's text and arrays describe."""
    facts = _facts(text)
    with _as_model_file_error():
        options = from_plain(_kind(facts.method).Settings, facts.options)
        _expect(len(facts.net.hidden) <= len(arrays), "more layers than it holds")
        normalization = _normalisation(facts, arrays)
        recipe = Recipe(facts.method, facts.seed, facts.net, facts.training, options, facts.input_shape)
        _check_sizes(recipe.blueprint(), arrays, sum(map(len, facts.tasks)))
        tasks = [tuple(task) for task in facts.tasks]
        model = Model(recipe, NormalizationSpec(facts.scale), normalization, tasks, facts.metrics)
        _fill(model.method.ledger, arrays, len(tasks))
        model.method.tasks_learned = len(tasks)
        model.method.classes = [range(a, b) for a, b in pairwise(accumulate(map(len, tasks), initial=0))]
        _check_packed(model.method.ledger)
        _take_extra(model, arrays)
        return model


def _normalisation(facts: Facts, arrays: Arrays) -> Normalization:
    shape = facts.input_shape
    mean, std = arrays.get("normalization/mean"), arrays.get("normalization/std")
    if mean is None or std is None or not shape or mean.shape != shape or std.shape not in (shape, (1,)):
        raise ModelFileError("not a model that can be used: input shape and normalization do not agree")
    for part in (mean, std):
        _expect(part.dtype == np.float32 and bool(np.isfinite(part).all()), "its normalization is not made of numbers")
    _expect(mean.size > 0 and bool((std > 0).all()), "its standard deviation is not above 0")
    scale = torch.from_numpy(std)
    return Normalization(facts.scale, torch.from_numpy(mean), scale if std.shape == shape else scale[0])


def _facts(text: str) -> Facts:
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"damaged: its header cannot be read ({error})") from error
    version = values.get("format") if isinstance(values, dict) else None
    if not isinstance(version, int) or isinstance(version, bool):
        raise ModelFileError("not a model that can be used (its header names no format)")
    if version > FORMAT:
        raise ModelFileError(
            f"written by a newer spacenet, in format {version}; this one ({__version__}) reads up to {FORMAT}: upgrade"
        )
    with _as_model_file_error():
        facts = from_plain(Facts, values)
        _expect(facts.seed >= 0, "negative seed")
        _expect(math.isfinite(facts.scale), "its scale is no number")
        _expect(bool(facts.tasks) and all(facts.tasks), "a task without classes")
        _expect(len(facts.tasks) <= MAX_TASKS, "more tasks than there can be")
        _expect(all(label == label for task in facts.tasks for label in task), "a label is not a number")
        _expect(all(len(set(map(repr, task))) == len(task) for task in facts.tasks), "a class twice in one task")
        return facts


def _kind(name: str) -> type[SparseMethod]:
    kind = get_method(name)
    _expect(issubclass(kind, SparseMethod), f"learned with {name}, which keeps no space; only its run can use it")
    return kind  # type: ignore[return-value]


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


def _fill(ledger: Ledger, arrays: Arrays, tasks: int) -> None:
    """Put into an empty ledger what the file holds, checking what a ledger must never hold."""
    for layer in ledger.blueprint.layers:
        name = layer.name
        state = arrays.get(f"state/{name}")
        if state is not None:
            _expect(bool(((state >= FREE) & (state < tasks)).all()), f"{name} is reserved by a task that is not there")
            ledger.state[name] = torch.from_numpy(state)
        elif name == ledger.blueprint.output.name:
            ledger.grow(name, len(arrays[f"units/{name}.bias"]))
        for key, kind in layer.keys().items():
            ledger.units[key] = _finite(arrays[f"units/{key}"], key, kind)
    for link in ledger.blueprint.links:
        ledger.connections[link.name] = _connections(link, ledger, arrays, tasks)


def _finite(array: Array, name: str, kind: UnitValue) -> Tensor:
    _expect(bool((np.isfinite(array) & (array >= kind.least)).all()), f"{name} has values that are not possible")
    return torch.from_numpy(array)


def _connections(link: Link, ledger: Ledger, arrays: Arrays, tasks: int) -> Connections:
    rows, source, value = (arrays[f"links/{link.name}/{part}"] for part in ("rows", "source", "value"))
    owners, targets, counts = rows.astype(np.int64).T
    sources, size = ledger.size(link.source), ledger.size(link.target)
    _expect(int(counts.sum()) == len(source) and bool((counts > 0).all()), f"{link.name}: rows do not add up")
    _expect(bool((owners < tasks).all()), f"{link.name}: an owner that is not there")
    _expect(bool((targets < size).all()) and bool((source < sources).all()), f"{link.name}: a unit that is not there")
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


def _take_extra(model: Model, arrays: Arrays) -> None:
    """Give the method what it keeps besides its connections, once it has found nothing wrong with it."""
    held = {name.removeprefix(EXTRA): array for name, array in arrays.items() if name.startswith(EXTRA)}
    _expect(all(array.dtype == np.float32 for array in held.values()), "summaries that are not made of numbers")
    extra, method = {name: torch.from_numpy(array) for name, array in held.items()}, model.method
    try:
        method.check_extra(extra, model.recipe.input_shape)
    except ValueError as error:
        raise ModelFileError(f"not a model that can be used: {error}") from error
    if extra:
        method.load_model({**method.network(), **extra})


def _expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ModelFileError(f"not a model that can be used: {otherwise}")


@contextmanager
def _as_model_file_error() -> Iterator[None]:
    """What settings from the file cannot mean is the file's fault."""
    try:
        yield
    except ModelFileError:
        raise
    except SpacenetError as error:
        raise ModelFileError(f"not a model that can be used: {error}") from error
