"""Random damage to settings and arrays: what a careless or malicious writer could put into a file.

Everything is drawn from one `random.Random`, so that a seed gives the same damage every time.
"""

import copy
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from spacenet.model.file_ledger import source_type
from spacenet.model.file_parts import Arrays
from spacenet.space.blueprint import Blueprint
from tests.model.forging import Change, Facts

Path_ = tuple[Any, ...]
INTEGERS = (
    *(0, 1, -1, 2, 3, 7, 255, 1000, 32767, 32768, 65535, 65536, 10**6, 10**7, 2**31 - 1, 2**31, 2**32),
    *(2**53 + 1, 2**63 - 1, 2**63, 2**64, 10**30, -(10**30), 10**400, -(10**400), 10**4000),
)
FLOATS = (
    *(0.0, -0.0, 0.1, 0.5, 0.999, 1.0, 2.5, -1.0, 5e-324, 1e-300, 1e-45, 1e-38, 1e-30, 1e-7, 1e6, 1e15, 1e16, 1e30),
    *(3.4e38, 1e39, 1e300, 1.7976931348623157e308, float("nan"), float("inf"), float("-inf")),
)
TEXTS = (
    *(
        "",
        " ",
        "0",
        "1",
        "64",
        "32",
        "1e9",
        "nan",
        "true",
        "null",
        "a" * 5000,
        "\x00",
        "\ud800",
        "\ue000\u202e",
        "\x1b[2J",
    ),
    *("é", "e\u0301", "\U0001f600", "../../etc/passwd", "%s{0}"),
)
CHOICES = (
    *("auto", "none", "first", "all", "weights", "logits", "inputs", "edges", "features", "samples", "statistics"),
    *("bf16", "adam", "sgd", "cosine", "constant", "crop-flip", "cpu", "cuda", "spacenet", "static-sparse", "naive"),
    *("spacenet-density", "spacenet-rehearsal", "mlp", "small-cnn", "resnet-18", "wrn-10-1", "wrn-999-999"),
    *(
        "3:hidden1=8",
        "3:conv1=4",
        "3:magic=4",
        "3:hidden1=1000000",
        "1:hidden1=8/3:hidden2=1000000000000",
        "3:output=2",
    ),
    *("3:hidden1=9" + "9" * 5000, "0:hidden1=1", "3:hidden1=-1", "3:", "3:hidden1=8,hidden1=8"),
)
"""Values that some settings take, and plans of growth that are none."""
KEYS = ("magic", "", "name", "hidden", "\ud800", "epochs", "__class__", "a" * 3000, "expand", "rotations")
DEPTHS = (30, 300, 900, 3_000, 50_000)
DEEP, TWICE = "\ue001deep", "\ue001twice"
"""Marks in a text: of a value with many levels, and of a key that stands there already."""


def any_value(rng: random.Random, depth: int = 0) -> Any:
    """A value of any type, most often an extreme one."""
    kind = rng.randrange(12 if depth < 3 else 8)
    if kind < 2:
        return rng.choice(INTEGERS)
    if kind < 4:
        return rng.choice(FLOATS)
    if kind < 6:
        return rng.choice(CHOICES)
    if kind == 6:
        return rng.choice(TEXTS)
    if kind == 7:
        return rng.choice((None, True, False, [], {}))
    if kind == 8:
        return {rng.choice(KEYS): any_value(rng, depth + 1) for _ in range(rng.randrange(1, 3))}
    if kind == 9:
        return [any_value(rng, depth + 1) for _ in range(rng.randrange(1, 4))]
    if kind == 10:
        return [any_value(rng, 3)] * rng.choice((2, 5, 1000, 40_000))
    return f"{DEEP}{rng.choice(DEPTHS)}{rng.choice(('[', '{'))}"


def paths(value: Any, path: Path_ = ()) -> Iterator[Path_]:
    """The places of all values in nested mappings and lists."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from paths(item, (*path, key))


def nearby(rng: random.Random, value: Any) -> Any:
    """A value that resembles another one."""
    if isinstance(value, bool) or value is None:
        return rng.choice((not value, int(bool(value)), str(value)))
    if isinstance(value, (int, float)):
        return rng.choice(
            (value + 1, value - 1, -value, value * 2, value * 1000, value // 3, str(value), [value], True)
        )
    if isinstance(value, str):
        return rng.choice((value + "x", value[:-1], value.upper(), [value], *CHOICES))
    if isinstance(value, dict):
        return list(value)
    return {str(number): item for number, item in enumerate(value)} if isinstance(value, list) else any_value(rng)


def same_type(rng: random.Random, value: Any) -> Any:
    """An extreme value of the same type, which is only refused for what it is."""
    if isinstance(value, bool) or value is None:
        return rng.choice((True, False, rng.choice(INTEGERS), rng.choice(FLOATS)))
    if isinstance(value, (int, float)):
        return rng.choice(INTEGERS if isinstance(value, int) else FLOATS)
    if isinstance(value, list):
        whole = bool(value) and isinstance(value[0], int)
        return [rng.choice(INTEGERS if whole else (*FLOATS, 5, 20.0)) for _ in range(rng.choice((1, len(value))))]
    return rng.choice((*CHOICES, *CHOICES, *TEXTS)) if isinstance(value, str) else any_value(rng)


def damage_facts(rng: random.Random, facts: Facts) -> Path_:
    """Change one thing in nested mappings; returns where."""
    found = list(paths(facts))
    weights = [1 + 2 * len(path) for path in found]
    path = rng.choices(found, weights)[0] if found else ("magic",)
    parent: Any = facts
    for part in path[:-1]:
        parent = parent[part]
    last, kind = path[-1], rng.randrange(10)
    held = parent[last] if isinstance(parent, list) or last in parent else None
    if kind < 2:
        parent[last] = any_value(rng)
    elif kind < 4:
        parent[last] = same_type(rng, held)
    elif kind < 6:
        parent[last] = nearby(rng, held)
    elif kind == 6:
        del parent[last]
    elif kind == 7 and isinstance(parent, dict):
        name = rng.choice((f"{last}{TWICE}", rng.choice(KEYS), rng.choice([str(p[-1]) for p in found])))
        parent[name], path = any_value(rng), (*path[:-1], name.replace(TWICE, ""))
    elif isinstance(held, list) and held:
        parent[last] = rng.choice((held[:-1], [*held, copy.deepcopy(held[-1])], held * 300, held[::-1], held[0]))
    else:
        parent[last] = any_value(rng, 3)
    return path


def expand_marks(text: str) -> str:
    """A JSON text with what the marks stand for."""
    text = text.replace(_escaped(TWICE), "")
    for depth in DEPTHS:
        text = text.replace(f'"{_escaped(DEEP)}{depth}["', "[" * depth + "]" * depth)
        text = text.replace(f'"{_escaped(DEEP)}{depth}{{"', '{"a":' * depth + "1" + "}" * depth)
    return text


def _escaped(mark: str) -> str:
    return mark.replace("\ue001", "\\ue001")


# Arrays

TYPES: tuple[Any, ...] = (np.float32, np.float64, np.float16, np.int8, np.uint8, np.int16, np.uint16, np.int32)
TYPES += (np.uint32, np.int64, np.uint64, np.bool_)
MANY = (2, 10, 1000)


def extreme(rng: random.Random, dtype: "np.dtype[Any]") -> Any:
    """A value that a type can hold."""
    if dtype.kind == "f":
        limits = np.finfo(dtype)
        numbers = (np.nan, np.inf, -np.inf, -1.0, 0.0, -0.0, 1e-3, 1.0, 1e4, float(limits.max), float(limits.min))
        return rng.choice((*numbers, float(limits.tiny), float(limits.smallest_subnormal), 1e15, -1e15, 1e30))
    if dtype.kind == "b":
        return rng.random() < 0.5
    whole = np.iinfo(dtype)
    return rng.choice((whole.max, whole.min, whole.max - 1, 0, 1, 2, max(whole.min, -1), max(whole.min, -2)))


def damage_arrays(rng: random.Random, arrays: Arrays) -> None:
    """Change one of the arrays, or which there are."""
    if not arrays:
        return
    name = rng.choice(sorted(arrays))
    array, kind = arrays[name], rng.randrange(12)
    if kind < 5:
        changed = array.copy()
        if changed.size and rng.random() < 0.7:
            changed.reshape(-1)[rng.randrange(changed.size)] = _cast(extreme(rng, changed.dtype), changed.dtype)
        else:
            changed[...] = _cast(extreme(rng, changed.dtype), changed.dtype)
        arrays[name] = changed
    elif kind == 5:
        with np.errstate(all="ignore"):
            arrays[name] = array.astype(rng.choice(TYPES))
    elif kind == 6:
        arrays[name] = _reshaped(rng, array)
    elif kind == 7:
        del arrays[name]
    elif kind == 8:
        arrays[rng.choice((*KEYS[:3], name + "x", rng.choice(sorted(arrays)), "extra/magic"))] = array.copy()
    elif kind == 9:
        other = rng.choice(sorted(arrays))
        arrays[name], arrays[other] = arrays[other], arrays[name]
    elif kind == 10:
        arrays[name] = np.resize(array, (len(array) * rng.choice(MANY), *array.shape[1:])) if array.ndim else array
    else:
        order = np.random.default_rng(rng.randrange(2**32)).permutation(len(array)) if array.ndim else ...
        arrays[name] = array[order].copy()


def _cast(value: Any, dtype: "np.dtype[Any]") -> Any:
    with np.errstate(all="ignore"):
        return np.asarray(value).astype(dtype)


def _reshaped(rng: random.Random, array: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    shapes: tuple[Callable[[], Any], ...] = (
        lambda: array.reshape(-1),
        lambda: array[None],
        lambda: array[..., None],
        lambda: array.T,
        lambda: array[..., :-1] if array.ndim else array,
        lambda: array[:0] if array.ndim else array,
        lambda: array[:1] if array.ndim else array,
        lambda: np.zeros((), array.dtype),
        lambda: np.zeros((2**40, 0), array.dtype),
        lambda: np.zeros((0, *array.shape), array.dtype),
        lambda: np.zeros((*array.shape[:-1], 0, 2**31), array.dtype),
    )
    return np.ascontiguousarray(rng.choice(shapes)()) if array.ndim else np.zeros((1,), array.dtype)


# What is consistent in itself, and therefore comes further


def grown(rng: random.Random, blueprint: Blueprint) -> Change:
    """A layer has more free units, as if it had been expanded."""
    layer, more = rng.choice(blueprint.hidden), rng.choice((1, 50, 1000))

    def change(facts: Facts, arrays: Arrays) -> None:
        state = f"state/{layer.name}"
        if state not in arrays:
            return
        arrays[state] = np.concatenate([arrays[state].reshape(-1), np.full(more, -1, np.int16)])
        for key, value in layer.keys().items():
            if f"units/{key}" in arrays:
                held = arrays[f"units/{key}"].reshape(-1)
                arrays[f"units/{key}"] = np.concatenate([held, np.full(more, value.initial, np.float32)])
        for link in blueprint.links:
            name = f"links/{link.name}/source"
            if link.source == layer.name and name in arrays:
                arrays[name] = arrays[name].astype(source_type(len(arrays[state])))

    return change


def reshaped_inputs(rng: random.Random) -> Change:
    """Inputs of another shape with as many numbers."""

    def change(facts: Facts, arrays: Arrays) -> None:
        mean, std = arrays.get("normalization/mean"), arrays.get("normalization/std")
        if mean is None or std is None or not mean.size:
            return
        shape = rng.choice(((1, mean.size), (mean.size, 1), (1, 1, mean.size), (mean.size,), (1, mean.size, 1, 1)))
        facts["input_shape"] = list(shape)
        arrays["normalization/mean"] = mean.reshape(shape)
        if std.size == mean.size:
            arrays["normalization/std"] = std.reshape(shape)

    return change
