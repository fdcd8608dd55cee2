"""Arrays in numpy's npy and npz files, read as untrusted input: headers are checked before any value is read."""

import math
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib import format as npy

from spacenet.data.preprocessing import Array
from spacenet.errors import DataError

MAX_HEADER = 10_000
"""Bytes of a header; numpy has the same limit, but checks it after reading up to 4 GiB."""
MAX_BYTES = 4 * 1024**3
"""Of all arrays of an archive together. A zip file of a few MB can claim to hold terabytes."""


@dataclass(frozen=True)
class Header:
    """Shape, type and order of an array."""

    shape: tuple[int, ...]
    dtype: "np.dtype[np.generic]"
    column_major: bool
    """Whether the first index varies fastest (Fortran order)."""

    @property
    def claimed_bytes(self) -> int:
        """Python integers do not overflow, so an impossible shape is noticed before numpy allocates memory for it."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_header(stream: IO[bytes]) -> Header:
    """Read the header; the values follow. Numpy raises many kinds of errors for a bad one: see `report_damage`."""
    version = npy.read_magic(stream)
    # The third version differs only for named fields, which no array here may have.
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"version {version} of the npy format")
    start = stream.read(2 if version == (1, 0) else 4)
    length = int.from_bytes(start, "little")
    if length > MAX_HEADER:
        raise ValueError(f"a header of {length} bytes")
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, column_major, dtype = read(BytesIO(start + stream.read(length)))
    return Header(tuple(shape), dtype, column_major)


def check_no_objects(where: str, header: Header) -> None:
    """Raise `DataError` for arrays of objects: reading them can run code."""
    if header.dtype.hasobject:
        raise DataError(
            f"{where} is an object array, which could run code when it is read, so it is not read; "
            "give all samples the same shape and convert it to a plain type, e.g. array.astype('float32')"
        )


def check_numbers(where: str, header: Header) -> None:
    """Raise `DataError` unless the values are numbers."""
    if header.dtype.kind not in "biuf":
        raise DataError(f"{where} holds {header.dtype} values; numbers are needed (integers or floats)")


def check_length(where: str, header: Header, found: int, remedy: str) -> None:
    """Raise `DataError` unless the values take as many bytes as the file has."""
    if header.claimed_bytes != found or any(length < 0 for length in header.shape):
        raise DataError(
            f"{where} claims to hold {header.shape} of {header.dtype} ({header.claimed_bytes} bytes) "
            f"but has {found} bytes; the file is damaged: {remedy}"
        )


def to_native(array: Array) -> Array:
    """The same values in a type that torch takes: this machine's byte order, and no floats wider than 64 bits."""
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        return array.astype(np.float64)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def find_nonfinite(array: Array) -> Array:
    """The indices of the rows with NaN or infinite values."""
    if array.dtype.kind != "f":
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(~np.isfinite(array).reshape(len(array), math.prod(array.shape[1:])).all(axis=1))


@contextmanager
def report_damage(where: str, remedy: str) -> Iterator[None]:
    """Turn the errors of reading an array, or an archive of arrays, into a `DataError`."""
    try:
        yield
    except DataError:
        raise
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, SyntaxError, tokenize.TokenError) as error:
        raise DataError(f"{where}: damaged ({error}): {remedy}") from error
    except MemoryError as error:
        raise DataError(f"{where}: does not fit into memory; use fewer samples or a smaller type") from error
    except (NotImplementedError, RuntimeError) as error:
        raise DataError(f"{where}: encrypted or compressed in a way that cannot be read ({error}): {remedy}") from error
    except OSError as error:
        raise DataError(f"{where}: unreadable ({error.strerror or error})") from error


def how_to_save(keys: Sequence[str]) -> str:
    """How to write an archive of such arrays, for error messages."""
    return f"save them with numpy.savez_compressed(path, {', '.join(f'{key}=…' for key in keys)})"


@contextmanager
def open_npz(path: Path, keys: Sequence[str]) -> Iterator[zipfile.ZipFile]:
    """Open an archive that should hold these arrays; errors of reading it become a `DataError`."""
    if not path.exists():
        raise DataError(f"{path}: no such file; an npz archive is needed")
    if not path.is_file():
        raise DataError(f"{path}: not a file; an npz archive is needed")
    with report_damage(str(path), how_to_save(keys)):
        if not zipfile.is_zipfile(path):
            raise DataError(f"{path}: not an npz archive (a zip of .npy arrays): {how_to_save(keys)}")
        with zipfile.ZipFile(path) as archive:
            yield archive


def list_arrays(archive: zipfile.ZipFile) -> list[str]:
    """The names of the arrays in an archive, sorted."""
    return sorted(name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy"))


def read_arrays(path: Path, *choices: Sequence[str], optional: Sequence[str] = ()) -> dict[str, Array]:
    """Read the first of several choices of arrays that an archive holds, and those of the optional ones that it has.

    Names that begin with x are samples (numbers), all others are labels (integers or strings).
    """
    with open_npz(path, choices[0]) as archive:
        held = list_arrays(archive)
        keys = next((keys for keys in choices if set(keys) <= set(held)), None)
        if keys is None:
            missing = [key for key in choices[0] if key not in held]
            shown = ", ".join(held[:12]) + (", …" if len(held) > 12 else "")
            raise DataError(
                f"{path}: has no {', '.join(missing)}; it holds {shown or 'nothing'}: {how_to_save(choices[0])}"
            )
        wanted = [*keys, *(key for key in optional if key in held)]
        _check_size(archive, path, wanted)
        return {key: _read_array(archive, path, key, how_to_save(keys)) for key in wanted}


def _check_size(archive: zipfile.ZipFile, path: Path, keys: Sequence[str]) -> None:
    claimed = sum(archive.getinfo(f"{key}.npy").file_size for key in keys)
    if claimed > MAX_BYTES:
        raise DataError(
            f"{path}: its arrays would take {claimed / 1024**3:.1f} GiB in memory, more than the "
            f"{MAX_BYTES / 1024**3:.0f} GiB that spacenet reads; use fewer samples or a smaller type (e.g. uint8)"
        )


def _read_array(archive: zipfile.ZipFile, path: Path, key: str, remedy: str) -> Array:
    where = f"{path}: {key}"
    info = archive.getinfo(f"{key}.npy")
    with archive.open(info) as stream:
        header = read_header(stream)
        found = info.file_size - stream.tell()
    check_no_objects(where, header)
    (_check_x if key.startswith("x") else _check_y)(where, header)
    check_length(where, header, found, remedy)
    with archive.open(info) as stream:
        array = to_native(np.load(stream, allow_pickle=False))
    if key.startswith("x"):
        check_finite(where, array)
    return array


def _check_x(where: str, header: Header) -> None:
    check_numbers(where, header)
    if len(header.shape) < 2 or 0 in header.shape:
        raise DataError(
            f"{where} has the shape {header.shape}; it needs one row per sample, (n, …), none of them empty"
        )


def _check_y(where: str, header: Header) -> None:
    if header.dtype.kind not in "iuU" or header.dtype.itemsize == 0:
        raise DataError(
            f"{where} holds {header.dtype} labels; integers or strings are needed, e.g. {where.split()[-1]}.astype(int)"
        )
    if len(header.shape) != 1:
        raise DataError(f"{where} has the shape {header.shape}; it needs one label per sample, (n,)")


def check_finite(where: str, array: Array) -> None:
    """Raise `DataError` if samples have NaN or infinite values."""
    bad = find_nonfinite(array)
    if len(bad):
        raise DataError(
            f"{where} has NaN or infinite values in {len(bad)} of its {len(array)} samples, "
            f"the first in row {bad[0]}; remove or replace them"
        )
