"""Memory for samples: an array, or beyond a limit a file in the cache folder that is mapped into memory."""

import math
import os
import shutil
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import numpy as np

from spacenet.data.fetch import CACHE_VARIABLE, cache_root
from spacenet.data.preprocessing import Array
from spacenet.errors import DataError, SettingsError
from spacenet.utils.files import make_folder, remove_leftovers, report_os_errors, temporary_path

LIMIT_VARIABLE = "SPACENET_MEMORY_LIMIT"
DEFAULT_LIMIT = 1024
"""MiB of samples that are kept in memory; more go to a file."""
NAME = "samples"


def memory_limit() -> int:
    """The bytes of samples that are kept in memory at most."""
    given = os.environ.get(LIMIT_VARIABLE) or str(DEFAULT_LIMIT)
    if not given.isdecimal():
        raise SettingsError(f"the environment variable {LIMIT_VARIABLE} is {given!r}; give a number of MiB, e.g. 1024")
    return int(given) * 1024**2


def allocate(shape: tuple[int, ...], dtype: "np.dtype[Any]", where: str) -> Array:
    """An array to read samples into. A file behind it is removed when the array is no longer used."""
    size = math.prod(shape) * dtype.itemsize
    if size <= memory_limit():
        return np.empty(shape, dtype)
    folder = cache_root() / "memory"
    make_folder(folder)
    remove_leftovers(folder, NAME)
    needed, free = size / 1024**3, shutil.disk_usage(folder).free / 1024**3
    if needed > free:
        raise DataError(
            f"{where}: its samples take {needed:.1f} GiB, more than may be kept in memory, and {folder} has only "
            f"{free:.1f} GiB left for them; set {CACHE_VARIABLE} to a folder with more space, or use fewer samples"
        )
    path = temporary_path(folder, NAME)
    with report_os_errors(path, "written"):
        mapped = np.memmap(path, dtype, "w+", shape=shape)
    weakref.finalize(mapped._mmap, _remove, path)  # type: ignore[attr-defined]
    return mapped


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()


def take_rows(x: Array, rows: Array) -> Array:
    """Some rows of an array by their positions, which are copied only when they are indexed; see `Rows`."""
    if isinstance(x, Rows):
        return cast(Array, Rows(x.array, x.rows[rows]))
    return cast(Array, Rows(x, rows))


class Rows:
    """Some rows of an array. It stands in for an array where samples are only counted and indexed by rows."""

    def __init__(self, array: Array, rows: Array) -> None:
        self.array, self.rows = array, rows

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.rows), *self.array.shape[1:])

    @property
    def dtype(self) -> "np.dtype[Any]":
        return cast("np.dtype[Any]", self.array.dtype)

    @property
    def ndim(self) -> int:
        return self.array.ndim

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Array:
        return np.asarray(self.array[self.rows[index]])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.asarray(self.array[self.rows], dtype)
