"""The user's own data: an npz archive with x_train, y_train, x_test and y_test, read as if it were hostile."""

import math
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib import format as npy

from spacenet.datasets.dataset import Array, Dataset
from spacenet.errors import DataError

KEYS = ("x_train", "y_train", "x_test", "y_test")
# All four arrays together. A zip of a few MB can claim to hold terabytes; this is what a laptop can take.
MAX_BYTES = 4 * 1024**3
SAVE = "save them with numpy.savez_compressed(path, x_train=…, y_train=…, x_test=…, y_test=…)"


@dataclass(frozen=True)
class _Header:
    """What an .npy member says of itself, before any of its values is read."""

    shape: tuple[int, ...]
    dtype: "np.dtype[np.generic]"
    data_bytes: int


def _read_header(stream: IO[bytes], member_bytes: int) -> _Header:
    version = npy.read_magic(stream)
    # The third version differs only for named fields, which no array here may have.
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"version {version} of the npy format")
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, _, dtype = read(stream)
    return _Header(tuple(shape), dtype, member_bytes - stream.tell())


def _check_x(where: str, header: _Header) -> None:
    if header.dtype.kind not in "biuf":
        raise DataError(f"{where} holds {header.dtype} values; give it numbers (integers or floats)")
    if len(header.shape) < 2 or 0 in header.shape:
        raise DataError(f"{where} has the shape {header.shape}; give it one row per sample: (n, …), none of them 0")


def _check_y(where: str, header: _Header) -> None:
    if header.dtype.kind not in "iuU" or header.dtype.itemsize == 0:
        raise DataError(
            f"{where} holds {header.dtype} labels; give it integers or strings, e.g. {where.split()[-1]}.astype(int)"
        )
    if len(header.shape) != 1:
        raise DataError(f"{where} has the shape {header.shape}; give it one label per sample: (n,)")


def _check_header(where: str, header: _Header) -> None:
    if header.dtype.hasobject:
        raise DataError(
            f"{where} is an object array, which can run code when it is opened and is not read; "
            "give all samples the same shape and convert it to a plain type, e.g. array.astype('float32')"
        )
    (_check_x if where.split()[-1].startswith("x") else _check_y)(where, header)
    # Python integers cannot overflow, so a made-up shape shows here, before numpy allocates for it.
    claimed = math.prod(header.shape) * header.dtype.itemsize
    if claimed != header.data_bytes or any(length < 0 for length in header.shape):
        raise DataError(
            f"{where} says {header.shape} of {header.dtype} ({claimed} bytes) but holds {header.data_bytes} bytes; "
            f"the file is damaged: {SAVE}"
        )


def _native(array: Array) -> Array:
    """The same values in a type that torch takes: this machine's byte order, and no floats wider than 64 bits."""
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        return array.astype(np.float64)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _check_finite(where: str, array: Array) -> None:
    if array.dtype.kind != "f":
        return
    bad = ~np.isfinite(array).reshape(len(array), -1).all(axis=1)
    if bad.any():
        raise DataError(
            f"{where} has NaN or infinite values in {int(bad.sum())} of its {len(array)} samples, "
            f"the first in row {int(bad.argmax())}; remove or replace them"
        )


def _read_array(archive: zipfile.ZipFile, path: Path, key: str) -> Array:
    where = f"{path}: {key}"
    info = archive.getinfo(f"{key}.npy")
    with archive.open(info) as stream:
        _check_header(where, _read_header(stream, info.file_size))
    with archive.open(info) as stream:
        array = _native(np.load(stream, allow_pickle=False))
    if key.startswith("x"):
        _check_finite(where, array)
    return array


def _check_members(archive: zipfile.ZipFile, path: Path) -> None:
    held = sorted(name.removesuffix(".npy") for name in archive.namelist())
    missing = [key for key in KEYS if key not in held]
    if missing:
        shown = ", ".join(held[:12]) + (", …" if len(held) > 12 else "")
        raise DataError(f"{path}: lacks {', '.join(missing)}; it holds {shown or 'nothing'}: {SAVE}")
    claimed = sum(archive.getinfo(f"{key}.npy").file_size for key in KEYS)
    if claimed > MAX_BYTES:
        raise DataError(
            f"{path}: its arrays would take {claimed / 1024**3:.1f} GiB in memory, more than the "
            f"{MAX_BYTES / 1024**3:.0f} GiB that spacenet reads; use fewer samples or a smaller type (e.g. uint8)"
        )


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    """The archive; what is wrong with the file itself, now or while reading, becomes a DataError."""
    if not path.exists():
        raise DataError(f"{path}: no such file; give the path of an npz archive")
    if not path.is_file():
        raise DataError(f"{path}: not a file; give the path of an npz archive")
    if not zipfile.is_zipfile(path):
        raise DataError(f"{path}: not an npz archive (a zip of .npy arrays): {SAVE}")
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, SyntaxError, tokenize.TokenError) as error:
        raise DataError(f"{path}: damaged ({error}): {SAVE}") from error
    except MemoryError as error:
        raise DataError(f"{path}: does not fit into the memory; use fewer samples or a smaller type") from error
    except (NotImplementedError, RuntimeError) as error:
        raise DataError(f"{path}: encrypted or compressed in a way that cannot be read ({error}): {SAVE}") from error


def load_npz(path: Path) -> Dataset:
    """The data set in an npz archive, named after the file. Bytes are taken as pixels (0 to 255), the rest as it is."""
    path = Path(path).expanduser()
    try:
        with _opened(path) as archive:
            _check_members(archive, path)
            x_train, y_train, x_test, y_test = (_read_array(archive, path, key) for key in KEYS)
    except OSError as error:
        raise DataError(f"{path}: unreadable ({error.strerror or error})") from error
    if (x_train.dtype == np.uint8) != (x_test.dtype == np.uint8):
        raise DataError(
            f"{path}: x_train holds {x_train.dtype} values and x_test {x_test.dtype}; bytes are scaled and others not, "
            "so give both the same type"
        )
    if (y_train.dtype.kind == "U") != (y_test.dtype.kind == "U"):
        raise DataError(f"{path}: y_train holds {y_train.dtype} labels and y_test {y_test.dtype}; use one type")
    scale = 1 / 255 if x_train.dtype == np.uint8 else 1.0
    try:
        return Dataset(path.stem, x_train, y_train, x_test, y_test, scale=scale)
    except DataError as error:
        raise DataError(f"{path}: {error}") from error
