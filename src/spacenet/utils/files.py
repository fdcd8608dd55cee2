"""Writing files whole or not at all, and files of tensors with facts: safetensors with one JSON text in the header."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from spacenet.errors import RunError

HEADER = "spacenet"


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """A path to write to, which replaces `path` in one move at the end; after an error nothing is left of it."""
    beside = path.with_name(path.name + ".new")
    try:
        yield beside
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def save_text(path: Path, text: str) -> None:
    """Write a text file so that it is there as a whole or not at all."""
    save_bytes(path, text.encode("utf-8"))


def save_bytes(path: Path, content: bytes) -> None:
    """Write a file so that it is there as a whole or not at all."""
    with atomic_write(path) as beside:
        beside.write_bytes(content)


def save_tensors(path: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
    """Write tensors and facts so that the file is there as a whole or not at all; equal content gives equal bytes."""
    header = {HEADER: json.dumps(facts, sort_keys=True)}  # one entry: the order of several would not be fixed
    content = save({name: tensor.contiguous() for name, tensor in tensors.items()}, header)
    save_bytes(path, content)  # not save_file: it makes files that only their owner can read


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    try:
        with safe_open(path, framework="pt") as file:
            facts = json.loads((file.metadata() or {})[HEADER])
            return {name: file.get_tensor(name) for name in file.keys()}, facts
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise RunError(f"{path} cannot be read ({error}); the run has to start again") from error
