"""Memory for samples: an array, or beyond a limit a file in the cache folder that is mapped into memory."""

import math
import os
import shutil
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from spacenet.data.fetch import CACHE_VARIABLE, cache_root
from spacenet.data.preprocessing import Array, Normalization
from spacenet.errors import DataError, SettingsError
from spacenet.utils.files import make_folder, remove_leftovers, report_os_errors, temporary_path

LIMIT_VARIABLE = "SPACENET_MEMORY_LIMIT"
DEFAULT_LIMIT = 1024
"""MiB of samples that are kept in memory; more go to a file."""
NAME = "samples"
BLOCK_BYTES = 16 * 1024**2
"""Of samples that are copied at a time."""
FIT_BYTES = 256 * 1024**2
"""Of raw samples that a normalization is fitted to at most."""


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


def normalize(normalization: Normalization, x: Array) -> Tensor:
    """Normalized samples; those beyond the memory limit go block by block into a file that is mapped into memory."""
    if 4 * math.prod(x.shape) <= memory_limit():
        return normalization(np.asarray(x))
    found, step = allocate(x.shape, np.dtype(np.float32), "a task"), _rows_of(BLOCK_BYTES, x.shape)
    for first in range(0, len(x), step):
        found[first : first + step] = normalization(np.asarray(x[first : first + step])).numpy()
    return torch.from_numpy(found)


def select_rows(x: Tensor, rows: Tensor) -> Tensor:
    """A copy of some rows; beyond the memory limit in a file that is mapped into memory."""
    shape = (len(rows), *x.shape[1:])
    if x.device.type != "cpu" or 4 * math.prod(shape) <= memory_limit():
        return x[rows]
    found = torch.from_numpy(allocate(shape, np.dtype(np.float32), "a task"))
    for into, part in zip(*(each.split(_rows_of(BLOCK_BYTES, shape)) for each in (found, rows)), strict=True):
        into.copy_(x[part])
    return found


def thin(x: Array) -> Array:
    """The samples, or where they are very large evenly spaced ones, to fit a normalization to."""
    size = math.prod(x.shape) * x.dtype.itemsize
    return np.asarray(x[:: math.ceil(size / FIT_BYTES)] if size > FIT_BYTES else x)


def _rows_of(size: int, shape: tuple[int, ...]) -> int:
    """How many 32-bit samples of an array of this shape take this many bytes, at least 1."""
    return max(1, size // max(1, 4 * math.prod(shape[1:])))


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
