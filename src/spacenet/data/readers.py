"""The data sets that spacenet knows by name, how each is read, and the list of them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from spacenet.data import files as table
from spacenet.data.dataset import Dataset
from spacenet.data.formats import read_idx, read_records
from spacenet.data.preprocessing import Array
from spacenet.data.sources import file_set, locate, search
from spacenet.errors import DataError


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


def _read_idx_files(entry: table.FileSet, contents: dict[str, bytes]) -> tuple[Array, Array, Array, Array]:
    def read(file: str) -> Array:
        return read_idx(contents.pop(file), f"{entry.name}: {file}")

    return (
        read(table.TRAIN_IMAGES),
        read(table.TRAIN_LABELS).astype(np.int64),
        read(table.TEST_IMAGES),
        read(table.TEST_LABELS).astype(np.int64),
    )


def _read_record_files(
    entry: table.FileSet, records: table.Records, contents: dict[str, bytes]
) -> tuple[Array, Array, Array, Array]:
    def read(files: tuple[str, ...]) -> tuple[Array, Array]:
        # Taken out of the contents, so that the files do not stay in memory beside the arrays made from them.
        taken = [contents.pop(file) for file in files]
        return read_records(taken, records.label_bytes, entry.shape, f"{entry.name}: {', '.join(files)}")

    return *read(records.train), *read(records.test)


def load_files(name: str, data_dir: Path | None = None) -> Dataset:
    """A data set that comes as files, fetched if no folder here has it."""
    entry = file_set(name)
    contents = locate(name, data_dir).contents
    arrays = (
        _read_idx_files(entry, contents)
        if entry.records is None
        else _read_record_files(entry, entry.records, contents)
    )
    return Dataset(name, *arrays, scale=1 / 255, mean=entry.mean, std=entry.std)


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


FIRST_CIFAR_100_CLASSES = 50


def load_cifar_10_100(data_dir: Path | None = None) -> Dataset:
    """CIFAR-10 and, after it, half of CIFAR-100, as one data set of 60 classes.

    The labels of CIFAR-10 are 0 to 9, those of CIFAR-100's classes 0 to 49 are 10 to 59; its other classes are left
    out. Both parts are normalised with the constants of CIFAR-10: one network sees them, and its first task is that.
    """
    later = DATASETS["cifar-100"].load(data_dir)
    train, test = later.y_train < FIRST_CIFAR_100_CLASSES, later.y_test < FIRST_CIFAR_100_CLASSES
    x_train, x_test = later.x_train[train], later.x_test[test]
    y_train, y_test = later.y_train[train] + 10, later.y_test[test] + 10
    # The other half of CIFAR-100 must not stay in memory while CIFAR-10 is read.
    del later
    first = DATASETS["cifar-10"].load(data_dir)
    return replace(
        first,
        name="cifar-10-100",
        x_train=np.concatenate([first.x_train, x_train]),
        y_train=np.concatenate([first.y_train, y_train]),
        x_test=np.concatenate([first.x_test, x_test]),
        y_test=np.concatenate([first.y_test, y_test]),
    )


COMBINED: dict[str, Callable[[Path | None], Dataset]] = {"cifar-10-100": load_cifar_10_100}
"""Data sets made from those above: they can be loaded by name, but have no files of their own to list or fetch."""


@lru_cache(maxsize=1)
def load_dataset(name: str, data_dir: Path | None = None) -> Dataset:
    """A data set by name; `data_dir` is the user's folder, asked first. The last one loaded is kept at hand."""
    loaders = {**{each: known.load for each, known in DATASETS.items()}, **COMBINED}
    if name not in loaders:
        raise DataError(f"there is no data set {name!r}; there are {', '.join(loaders)}")
    return loaders[name](data_dir)


def list_datasets(data_dir: Path | None = None) -> list[Listing]:
    """Every data set, and where it is on this machine right now. Touches no network."""
    lines = []
    for known in DATASETS.values():
        place = known.find(data_dir)
        lines.append(
            Listing(known.name, known.classes, known.train, known.test, known.shape, place.where, place.problems)
        )
    return lines
