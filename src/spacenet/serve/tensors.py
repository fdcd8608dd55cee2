"""Tensors of the Open Inference Protocol, as JSON and as bytes after it. What requests hold may be malicious.

Bytes are those of the binary tensor data extension: values in row-major order, little endian; a text is its length in
four bytes and then itself.
"""

import math
import struct
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from spacenet.data.preprocessing import Array
from spacenet.serve.messages import RequestError

TYPES: dict[str, str] = {
    "BOOL": "?",
    **{f"UINT{8 * size}": f"<u{size}" for size in (1, 2, 4, 8)},
    **{f"INT{8 * size}": f"<i{size}" for size in (1, 2, 4, 8)},
    **{f"FP{8 * size}": f"<f{size}" for size in (2, 4, 8)},
}
"""Numpy's name of each datatype of numbers."""
BF16, BYTES = "BF16", "BYTES"
MAX_AXES = 8
Parameters = dict[str, Any]
Values = Array | list[bytes]
"""Numbers in an array, or texts (or files) in a list."""


class Message(BaseModel):
    """A part of a request. Names that are not known are left alone, as the protocol wants it."""

    model_config = ConfigDict(extra="ignore", strict=True)


class InputTensor(Message):
    """A tensor of a request."""

    name: str
    shape: Annotated[list[int], Field(description="The first axis counts the samples.", examples=[[1, 3]])]
    datatype: Annotated[str, Field(description=f"One of {', '.join((*TYPES, BF16, BYTES))}.", examples=["FP32"])]
    parameters: Parameters | None = None
    data: Annotated[list[Any] | None, Field(description="Its values, nested or flat.", examples=[[0.0, 1.5, 2.0]])] = (
        None
    )


class OutputName(Message):
    """A tensor that is wanted."""

    name: str
    parameters: Parameters | None = None


class InferenceRequest(Message):
    """A request of the Open Inference Protocol, version 2."""

    id: str | None = None
    parameters: Parameters | None = None
    inputs: list[InputTensor]
    outputs: list[OutputName] | None = None


def read_tensor(given: InputTensor, binary: bytes | None) -> Values:
    """The values of a tensor: `binary`, or what stands in its JSON."""
    shape = tuple(given.shape)
    if not 0 < len(shape) <= MAX_AXES or any(length < 0 for length in shape):
        raise _error(given, f"its shape is no list of 1 to {MAX_AXES} lengths")
    if given.datatype not in (*TYPES, BF16, BYTES):
        raise _error(given, f"unknown datatype {given.datatype[:20]!r}; choose from {', '.join((*TYPES, BF16, BYTES))}")
    if (binary is None) == (given.data is None):
        raise _error(given, "give its data, either in the JSON or after it")
    count = math.prod(shape)
    if given.datatype == BYTES:
        texts = _read_texts(given, binary) if binary is not None else _texts(given)
        if len(texts) != count:
            raise _error(given, f"it has {len(texts):,} values; its shape is that of {_number(count)}")
        return texts
    if binary is None:
        return _from_json(given, shape, count)
    size = 2 if given.datatype == BF16 else np.dtype(TYPES[given.datatype]).itemsize
    if count * size != len(binary):
        raise _error(given, f"it has {len(binary):,} bytes; its shape and datatype need {_number(count * size)}")
    if given.datatype == BF16:  # the upper half of a float
        return np.asarray((np.frombuffer(binary, "<u2").astype("<u4") << 16).view("<f4").reshape(shape))
    if given.datatype == "BOOL":
        return np.asarray(np.frombuffer(binary, "u1") != 0).reshape(shape)
    return np.frombuffer(binary, TYPES[given.datatype]).reshape(shape)


def write_tensor(name: str, datatype: str, values: Array, binary: bool) -> tuple[dict[str, Any], bytes]:
    """A tensor of a response, and the bytes that follow the JSON, if it is to be sent as bytes. Texts are objects."""
    made: dict[str, Any] = {"name": name, "datatype": datatype, "shape": list(values.shape)}
    if not binary:
        plain = values if datatype == BYTES else values.astype(TYPES[datatype])
        return {**made, "data": plain.ravel().tolist()}, b""
    if datatype == BYTES:
        texts = [text.encode("utf-8", "replace") for text in values.ravel()]
        content = b"".join(struct.pack("<I", len(text)) + text for text in texts)
    else:
        content = values.astype(TYPES[datatype]).tobytes()
    return {**made, "parameters": {"binary_data_size": len(content)}}, content


def split_binary(inputs: Sequence[InputTensor], content: bytes) -> list[bytes | None]:
    """What follows the JSON of a request, for each of its tensors."""
    found: list[bytes | None] = []
    first = 0
    for each in inputs:
        size = (each.parameters or {}).get("binary_data_size")
        if size is None:
            found.append(None)
        elif type(size) is not int or not 0 <= size <= len(content) - first:
            raise _error(each, f"its binary_data_size is {str(size)[:40]}; {len(content) - first:,} bytes are left")
        else:
            found.append(content[first : first + size])
            first += size
    if first != len(content):
        raise RequestError(f"{len(content) - first:,} bytes after the JSON belong to no input", 400)
    return found


def wants_binary(wanted: OutputName, parameters: Mapping[str, Any]) -> bool:
    """Whether an output is to be sent as bytes."""
    return (wanted.parameters or {}).get("binary_data", parameters.get("binary_data_output", False)) is True


def _from_json(given: InputTensor, shape: tuple[int, ...], count: int) -> Array:
    values = _flatten(given, shape, count)
    kind = np.dtype("f4" if given.datatype == BF16 else TYPES[given.datatype])
    allowed: set[type] = {bool} if kind.kind == "b" else {int, float} if kind.kind == "f" else {int}
    if not set(map(type, values)) <= allowed:
        raise _error(given, f"its data hold something that is not {given.datatype}")
    try:
        with np.errstate(over="ignore"):
            return np.array(values, kind).reshape(shape)
    except OverflowError as error:
        raise _error(given, f"its data hold a number that is too large for {given.datatype}") from error


def _flatten(given: InputTensor, shape: tuple[int, ...], count: int) -> list[Any]:
    """The values of nested lists, or of a flat one."""
    level: list[Any] = given.data or []
    if level and isinstance(level[0], list):
        for length in shape[1:]:
            if any(not isinstance(part, list) or len(part) != length for part in level):
                raise _error(given, "its data are not nested as its shape says")
            level = list(chain.from_iterable(level))
    if len(level) != count:
        raise _error(given, f"it has {len(level):,} values; its shape is that of {_number(count)}")
    return level


def _texts(given: InputTensor) -> list[bytes]:
    values = _flatten(given, tuple(given.shape), math.prod(given.shape))
    if any(not isinstance(value, str) for value in values):
        raise _error(given, "its data hold something that is not a text")
    return [value.encode("utf-8", "surrogatepass") for value in values]


def _read_texts(given: InputTensor, content: bytes) -> list[bytes]:
    found, place = [], 0
    while place < len(content):
        end = place + 4 + int.from_bytes(content[place : place + 4], "little")
        if end > len(content):
            raise _error(given, "its bytes end in the middle of a text")
        found.append(content[place + 4 : end])
        place = end
    return found


def _number(count: int) -> str:
    """A number for a message; that of a malicious shape can be long."""
    return f"{count:,}" if count < 10**15 else "too many"


def _error(given: InputTensor, reason: str) -> RequestError:
    return RequestError(f"the input {given.name[:100]!r}: {reason}", 400)
