"""The formats of data files: verified bytes to arrays."""

import math
import struct
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from spacenet.errors import DataError

if TYPE_CHECKING:
    from spacenet.data.preprocessing import Array

IDX_BYTES = 0x08
"""The code of bytes among the types of an IDX file."""


def decode_idx(content: bytes, where: str) -> "Array":
    """The array of bytes in an IDX file."""
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] != IDX_BYTES:
        raise DataError(f"{where}: not an IDX file of bytes")
    header = 4 + 4 * content[3]
    if len(content) < header:
        raise DataError(f"{where}: an IDX file that ends within its header")
    shape = struct.unpack_from(f">{content[3]}I", content, 4)
    values = np.frombuffer(content, dtype=np.uint8, offset=header)
    # Python's product and not numpy's, which could overflow to the right number.
    if len(values) != math.prod(shape):
        raise DataError(f"{where}: an IDX file of the shape {shape} with {len(values)} values")
    # A copy, because an array over immutable bytes is read-only, which torch warns about.
    return values.reshape(shape).copy()


def encode_idx(array: "Array") -> bytes:
    """An array of bytes in the IDX format: two zeros, the type, the number of axes, the lengths, the values."""
    return struct.pack(f">HBB{array.ndim}I", 0, IDX_BYTES, array.ndim, *array.shape) + array.tobytes()


def decode_records(
    contents: Iterable[bytes], label_bytes: int, shape: tuple[int, ...], where: str
) -> "tuple[Array, Array]":
    """The images and labels of files of records: bytes of labels, the last of them the class, then the pixels."""
    length = label_bytes + math.prod(shape)
    parts = []
    for content in contents:
        if len(content) % length:
            raise DataError(f"{where}: {len(content)} bytes are not a whole number of records of {length} bytes")
        parts.append(np.frombuffer(content, dtype=np.uint8).reshape(-1, length))
    # The parts are views, so this is the only copy of the pixels; and unlike them it can be written to.
    images = np.concatenate([part[:, label_bytes:] for part in parts]).reshape(-1, *shape)
    return images, np.concatenate([part[:, label_bytes - 1] for part in parts]).astype(np.int64)
