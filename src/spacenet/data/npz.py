"""The user's own data: an npz archive with x_train, y_train, x_test and y_test, read as if it were hostile."""

import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from spacenet.data.dataset import Array, Dataset
from spacenet.data.npy import (
    Header,
    check_length,
    check_numbers,
    check_plain,
    damage_reported,
    native,
    not_finite,
    read_header,
)
from spacenet.errors import DataError

KEYS = ("x_train", "y_train", "x_test", "y_test")
# All arrays together. A zip of a few MB can claim to hold terabytes; this is what a laptop can take.
MAX_BYTES = 4 * 1024**3


def saving(keys: Sequence[str]) -> str:
    """How to make an archive of such arrays."""
    return f"save them with numpy.savez_compressed(path, {', '.join(f'{key}=…' for key in keys)})"


@contextmanager
def opened(path: Path, keys: Sequence[str]) -> Iterator[zipfile.ZipFile]:
    """An archive that should hold these arrays; what is wrong with it, now or while reading, becomes a DataError."""
    if not path.exists():
        raise DataError(f"{path}: no such file; give the path of an npz archive")
    if not path.is_file():
        raise DataError(f"{path}: not a file; give the path of an npz archive")
    with damage_reported(str(path), saving(keys)):
        if not zipfile.is_zipfile(path):
            raise DataError(f"{path}: not an npz archive (a zip of .npy arrays): {saving(keys)}")
        with zipfile.ZipFile(path) as archive:
            yield archive


def names_held(archive: zipfile.ZipFile) -> list[str]:
    """The names of the arrays in an archive, sorted."""
    return sorted(name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy"))


def read_arrays(path: Path, *choices: Sequence[str], optional: Sequence[str] = ()) -> dict[str, Array]:
    """The arrays of the first choice of names that an archive holds, and of the optional ones those that are there.

    A name that begins with x stands for samples (numbers), any other for labels (integers or words).
    """
    with opened(path, choices[0]) as archive:
        held = names_held(archive)
        keys = next((keys for keys in choices if set(keys) <= set(held)), None)
        if keys is None:
            missing = [key for key in choices[0] if key not in held]
            shown = ", ".join(held[:12]) + (", …" if len(held) > 12 else "")
            raise DataError(f"{path}: lacks {', '.join(missing)}; it holds {shown or 'nothing'}: {saving(choices[0])}")
        wanted = [*keys, *(key for key in optional if key in held)]
        _check_claim(archive, path, wanted)
        return {key: _read_array(archive, path, key, saving(keys)) for key in wanted}


def _check_claim(archive: zipfile.ZipFile, path: Path, keys: Sequence[str]) -> None:
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
        held = info.file_size - stream.tell()
    check_plain(where, header)
    (_check_x if key.startswith("x") else _check_y)(where, header)
    check_length(where, header, held, remedy)
    with archive.open(info) as stream:
        array = native(np.load(stream, allow_pickle=False))
    if key.startswith("x"):
        _check_finite(where, array)
    return array


def _check_x(where: str, header: Header) -> None:
    check_numbers(where, header)
    if len(header.shape) < 2 or 0 in header.shape:
        raise DataError(f"{where} has the shape {header.shape}; give it one row per sample: (n, …), none of them 0")


def _check_y(where: str, header: Header) -> None:
    if header.dtype.kind not in "iuU" or header.dtype.itemsize == 0:
        raise DataError(
            f"{where} holds {header.dtype} labels; give it integers or strings, e.g. {where.split()[-1]}.astype(int)"
        )
    if len(header.shape) != 1:
        raise DataError(f"{where} has the shape {header.shape}; give it one label per sample: (n,)")


def _check_finite(where: str, array: Array) -> None:
    bad = not_finite(array)
    if len(bad):
        raise DataError(
            f"{where} has NaN or infinite values in {len(bad)} of its {len(array)} samples, "
            f"the first in row {bad[0]}; remove or replace them"
        )


def load_npz(path: Path) -> Dataset:
    """The data set in an npz archive, named after the file. Bytes are taken as pixels (0 to 255), the rest as it is."""
    path = Path(path).expanduser()
    x_train, y_train, x_test, y_test = (array for array in read_arrays(path, KEYS).values())
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
