"""The model file: one safetensors file, self-contained, no pickle, with a checksum. It is read whole, or refused."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.numpy import load, save

from spacenet.data.preprocessing import Array
from spacenet.errors import ModelFileError
from spacenet.model.encoding import Arrays, decode, encode
from spacenet.model.model import Model
from spacenet.utils.files import save_bytes

HEADER = "spacenet-model"
MAX_HEADER = 4 * 1024**2
"""Bytes of a header that are read; a model of a thousand classes has a tenth of that."""


def save_model(path: Path, model: Model) -> None:
    """Write a model so that the file is there as a whole or not at all; equal models give equal bytes."""
    try:
        save_bytes(path, to_bytes(model))
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be written ({error.strerror or error})") from error


def load_model(path: Path) -> Model:
    """Read a model file. Its content is not trusted: everything is checked."""
    path = Path(path).expanduser()
    try:
        return from_bytes(_content(path))
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from error


def to_bytes(model: Model) -> bytes:
    """The content of a model's file."""
    text, arrays = encode(model)
    return bytes(save(arrays, {HEADER: f"{compute_checksum(text, arrays)} {text}"}))


def from_bytes(content: bytes) -> Model:
    """The model whose file content this is."""
    length = int.from_bytes(content[:8], "little")
    header = _header(content[8 : 8 + min(length, MAX_HEADER)])
    try:
        arrays: Arrays = load(content)
    except (SafetensorError, ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise ModelFileError(f"damaged, or not a model file ({error})") from error
    metadata = header.get("__metadata__")
    checksum, _, text = str(metadata.get(HEADER, "") if isinstance(metadata, dict) else "").partition(" ")
    if not text:
        leave = "only methods that divide a network among tasks, such as spacenet, leave one"
        raise ModelFileError(f"not a model to use: {leave}")
    if checksum != compute_checksum(text, arrays):
        raise ModelFileError("damaged: its content does not match its checksum; copy or download it again")
    return decode(text, arrays)


def _content(path: Path) -> bytes:
    """The file, if its size is what its header says."""
    try:
        with path.open("rb") as file:
            start = file.read(8)
            length = int.from_bytes(start, "little")
            if len(start) < 8 or not 0 < length <= MAX_HEADER:
                raise ModelFileError("not a model file")
            text = file.read(length)
            ends = [each["data_offsets"][1] for name, each in _header(text).items() if name != "__metadata__"]
            if path.stat().st_size != 8 + length + max(ends, default=0):
                raise ModelFileError("cut off, or not a model file")
            return start + text + file.read()
    except FileNotFoundError as error:
        raise ModelFileError("no such file") from error
    except OSError as error:
        raise ModelFileError(f"cannot be read ({error.strerror or error})") from error
    except (KeyError, TypeError, IndexError) as error:
        raise ModelFileError("damaged, or not a model file") from error


def _header(text: bytes) -> dict[str, Any]:
    try:
        header = json.loads(text)
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict):
        raise ModelFileError("damaged: its header cannot be read")
    return header


def compute_checksum(text: str, arrays: Mapping[str, Array]) -> str:
    """The SHA-256 of a header's text and the arrays with their names, types and shapes."""
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass"))
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode("utf-8", "surrogatepass"))
        digest.update(array.tobytes())
    return digest.hexdigest()
