"""Model files with a right checksum and something else in them."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
from safetensors.numpy import save

from spacenet.model.file import HEADER, compute_checksum, encode
from spacenet.model.file_parts import Arrays
from spacenet.model.model import Model

Facts = dict[str, Any]
Change = Callable[[Facts, Arrays], None]


def forged(model: Model, change: Change) -> bytes:
    """A file with a right checksum and something else in it."""
    text, arrays = encode(model)
    facts, arrays = json.loads(text), {name: array.copy() for name, array in arrays.items()}
    change(facts, arrays)
    return seal(json.dumps(facts), arrays)


def seal(text: str, arrays: Arrays) -> bytes:
    """A file with this header and these arrays, and with the checksum that belongs to them."""
    return bytes(save(arrays, {HEADER: f"{compute_checksum(text, arrays)} {text}"}))


def say(key: str, value: Any) -> Change:
    def change(facts: Facts, arrays: Arrays) -> None:
        *path, last = key.split(".")
        for part in path:
            facts = facts[part]
        facts[last] = value

    return change


def put(name: str, where: Any, value: Any) -> Change:
    def change(facts: Facts, arrays: Arrays) -> None:
        arrays[name][where] = value

    return change


def replaced(name: str, make: Callable[[np.ndarray], np.ndarray | None]) -> Change:
    def change(facts: Facts, arrays: Arrays) -> None:
        made = make(arrays.pop(name))
        if made is not None:
            arrays[name] = made

    return change
