"""The data sets that spacenet knows by name, how each is read, and the list of them."""

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from spacenet.datasets import files as table
from spacenet.datasets.dataset import Array, Dataset
from spacenet.datasets.sources import file_set, locate, search
from spacenet.errors import DataError

IDX_BYTES = 0x08


@dataclass(frozen=True)
class Place:
    """Where a data set is on this machine (None: nowhere), and what was found there that cannot be used."""

    where: str | None
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class Known:
    """A data set by name: what it holds, how to read it, how to find it without any network."""

    name: str
    classes: int
    train: int
    test: int
    shape: tuple[int, ...]
    load: Callable[[Path | None], Dataset]
    find: Callable[[Path | None], Place]


@dataclass(frozen=True)
class Listing:
    """One line of the list of data sets."""

    name: str
    classes: int
    train: int
    test: int
    shape: tuple[int, ...]
    where: str | None
    problems: tuple[str, ...]

    @property
    def status(self) -> str:
        """Where it was found, or what to do."""
        return self.where or f"not here; `spacenet data fetch {self.name}`"


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


def load_files(name: str, data_dir: Path | None = None) -> Dataset:
    """A data set that comes as four IDX files, fetched if no folder here has it."""
    entry = file_set(name)
    contents = locate(name, data_dir).contents

    def read(file: str) -> Array:
        return read_idx(contents[file], f"{name}: {file}")

    return Dataset(
        name,
        x_train=read(table.TRAIN_IMAGES),
        y_train=read(table.TRAIN_LABELS).astype(np.int64),
        x_test=read(table.TEST_IMAGES),
        y_test=read(table.TEST_LABELS).astype(np.int64),
        scale=1 / 255,
        mean=entry.mean,
        std=entry.std,
    )


def find_files(name: str, data_dir: Path | None = None) -> Place:
    """Where the files are on this machine. They are read and verified, so what is found can be used."""
    found = search(name, data_dir, download=False)
    return Place(found.where if found.complete else None, tuple(found.broken))


def load_digits(data_dir: Path | None = None) -> Dataset:
    """The 8x8 digits that come with scikit-learn: every fifth sample of each class is for the test."""
    from sklearn import datasets

    bunch = datasets.load_digits()
    x, y = bunch.images.astype(np.uint8), bunch.target.astype(np.int64)
    test = np.zeros(len(y), dtype=bool)
    for label in np.unique(y):
        test[np.flatnonzero(y == label)[4::5]] = True
    return Dataset("digits", x[~test], y[~test], x[test], y[test], scale=1 / 16)


def find_digits(data_dir: Path | None = None) -> Place:
    """scikit-learn is a dependency, so the digits are always here."""
    return Place("comes with scikit-learn")


def _known_files(entry: table.FileSet) -> Known:
    load, find = partial(load_files, entry.name), partial(find_files, entry.name)
    return Known(entry.name, entry.classes, entry.train, entry.test, entry.shape, load, find)


DATASETS: dict[str, Known] = {
    "digits": Known("digits", 10, 1442, 355, (8, 8), load_digits, find_digits),
    **{name: _known_files(entry) for name, entry in table.FILE_SETS.items()},
}


@lru_cache(maxsize=1)
def load_dataset(name: str, data_dir: Path | None = None) -> Dataset:
    """A data set by name; `data_dir` is the user's folder, asked first. The last one loaded is kept at hand."""
    if name not in DATASETS:
        raise DataError(f"there is no data set {name!r}; there are {', '.join(DATASETS)}")
    return DATASETS[name].load(data_dir)


def list_datasets(data_dir: Path | None = None) -> list[Listing]:
    """Every data set, and where it is on this machine right now. Touches no network."""
    lines = []
    for known in DATASETS.values():
        place = known.find(data_dir)
        lines.append(
            Listing(known.name, known.classes, known.train, known.test, known.shape, place.where, place.problems)
        )
    return lines
