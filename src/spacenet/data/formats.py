"""The formats of data files: bytes that were verified, into arrays."""

import math
import struct
from collections.abc import Iterable

import numpy as np

from spacenet.data.preprocessing import Array
from spacenet.errors import DataError

IDX_BYTES = 0x08


def read_idx(content: bytes, where: str) -> Array:
    """The array of bytes in an IDX file."""
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] != IDX_BYTES:
        raise DataError(f"{where}: not an IDX file of bytes; get it again with `spacenet data fetch`")
    header = 4 + 4 * content[3]
    if len(content) < header:
        raise DataError(f"{where}: an IDX file that ends within its header; get it again with `spacenet data fetch`")
    shape = struct.unpack_from(f">{content[3]}I", content, 4)
    values = np.frombuffer(content, dtype=np.uint8, offset=header)
    # Python's product and not numpy's: that of made-up lengths must not wrap around to the right number.
    if len(values) != math.prod(shape):
        raise DataError(
            f"{where}: says {shape} but holds {len(values)} values; get it again with `spacenet data fetch`"
        )
    # A copy, because an array over immutable bytes is read-only, which torch warns about.
    return values.reshape(shape).copy()


def read_records(
    contents: Iterable[bytes], label_bytes: int, shape: tuple[int, ...], where: str
) -> tuple[Array, Array]:
    """The images and labels of files of records: bytes of labels, the last of them the class, then the pixels."""
    length = label_bytes + math.prod(shape)
    parts = []
    for content in contents:
        if len(content) % length:
            raise DataError(
                f"{where}: {len(content)} bytes are no whole number of records of {length}; "
                "get it again with `spacenet data fetch`"
            )
        parts.append(np.frombuffer(content, dtype=np.uint8).reshape(-1, length))
    # The parts are views, so this is the only copy of the pixels; and unlike them it can be written to.
    images = np.concatenate([part[:, label_bytes:] for part in parts]).reshape(-1, *shape)
    return images, np.concatenate([part[:, label_bytes - 1] for part in parts]).astype(np.int64)
