"""Arrays in numpy's npy format, read as if they were hostile: what one says of itself, before any of its values."""

import math
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import IO

import numpy as np
from numpy.lib import format as npy

from spacenet.data.dataset import Array
from spacenet.errors import DataError

MAX_HEADER = 10_000
"""Bytes of a header; numpy takes no more either, but only says so after reading up to 4 GiB."""


@dataclass(frozen=True)
class Header:
    """What an array says of itself."""

    shape: tuple[int, ...]
    dtype: "np.dtype[np.generic]"
    by_columns: bool
    """Whether the first index runs fastest (Fortran's order)."""

    @property
    def claimed_bytes(self) -> int:
        """Python integers cannot overflow, so a made-up shape shows here, before numpy allocates for it."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_header(stream: IO[bytes]) -> Header:
    """Read up to where the values begin. What is wrong is raised in whatever way numpy does: see `damage_reported`."""
    version = npy.read_magic(stream)
    # The third version differs only for named fields, which no array here may have.
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"version {version} of the npy format")
    start = stream.read(2 if version == (1, 0) else 4)
    length = int.from_bytes(start, "little")
    if length > MAX_HEADER:
        raise ValueError(f"a header of {length} bytes")
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, by_columns, dtype = read(BytesIO(start + stream.read(length)))
    return Header(tuple(shape), dtype, by_columns)


def check_plain(where: str, header: Header) -> None:
    """No objects: they can run code when they are opened."""
    if header.dtype.hasobject:
        raise DataError(
            f"{where} is an object array, which can run code when it is opened and is not read; "
            "give all samples the same shape and convert it to a plain type, e.g. array.astype('float32')"
        )


def check_numbers(where: str, header: Header) -> None:
    """Values that a network can take."""
    if header.dtype.kind not in "biuf":
        raise DataError(f"{where} holds {header.dtype} values; give it numbers (integers or floats)")


def check_length(where: str, header: Header, held: int, remedy: str) -> None:
    """The values must take as many bytes as there are."""
    if header.claimed_bytes != held or any(length < 0 for length in header.shape):
        raise DataError(
            f"{where} says {header.shape} of {header.dtype} ({header.claimed_bytes} bytes) but holds {held} bytes; "
            f"the file is damaged: {remedy}"
        )


def native(array: Array) -> Array:
    """The same values in a type that torch takes: this machine's byte order, and no floats wider than 64 bits."""
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        return array.astype(np.float64)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def not_finite(array: Array) -> Array:
    """The numbers of the rows with NaN or infinite values."""
    if array.dtype.kind != "f":
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(~np.isfinite(array).reshape(len(array), math.prod(array.shape[1:])).all(axis=1))


@contextmanager
def damage_reported(where: str, remedy: str) -> Iterator[None]:
    """What goes wrong in reading an array or an archive of them becomes a DataError."""
    try:
        yield
    except DataError:
        raise
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, SyntaxError, tokenize.TokenError) as error:
        raise DataError(f"{where}: damaged ({error}): {remedy}") from error
    except MemoryError as error:
        raise DataError(f"{where}: does not fit into the memory; use fewer samples or a smaller type") from error
    except (NotImplementedError, RuntimeError) as error:
        raise DataError(f"{where}: encrypted or compressed in a way that cannot be read ({error}): {remedy}") from error
    except OSError as error:
        raise DataError(f"{where}: unreadable ({error.strerror or error})") from error
