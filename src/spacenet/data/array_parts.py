"""Labeled samples in npz and npy files."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from spacenet.data.arrays import (
    HOW_TO_SAVE,
    MAX_BYTES,
    Header,
    check_samples_header,
    choose_arrays,
    how_to_save,
    open_npz,
    read_header,
    read_labels,
    read_samples,
    report_damage,
)
from spacenet.data.checks import channels_first, check_samples, to_native
from spacenet.data.parts import Batch, Part, Shape, Target
from spacenet.data.preprocessing import Array
from spacenet.errors import DataError, SettingsError

TRAIN, WHOLE, TEST = ("x_train", "y_train"), ("x", "y"), ("x_test", "y_test")


def npz_parts(path: Path, target: Target | None = None) -> tuple[Part, Part | None]:
    """What an archive holds: x_train and y_train, or x and y; and if it has them, x_test and y_test."""
    with open_npz(path, TRAIN) as (_, held):
        keys = choose_arrays(path, held, TRAIN, WHOLE)
    test = [key for key in TEST if key in held]
    if len(test) == 1:
        raise DataError(f"{path}: has one of x_test and y_test; give both or neither")
    return _npz_part(path, keys, target), _npz_part(path, test, target) if test else None


def npz_test_part(path: Path, target: Target | None = None) -> tuple[Part, None]:
    """What an archive holds to evaluate a model on: x_test and y_test, or x and y, or x_train and y_train."""
    with open_npz(path, TEST) as (_, held):
        keys = choose_arrays(path, held, TEST, WHOLE, TRAIN)
    return _npz_part(path, keys, target), None


def _npz_part(path: Path, keys: Sequence[str], target: Target | None) -> Part:
    x, y = keys
    where, remedy = f"{path}: {x}", how_to_save((x, y))
    with open_npz(path, (x, y)) as (archive, _):
        info = archive.getinfo(f"{x}.npy")
        with archive.open(info) as stream:
            header = read_header(stream)
            check_samples_header(where, header, info.file_size - stream.tell(), remedy)
        if header.claimed_bytes > MAX_BYTES:
            size, most = header.claimed_bytes / 1024**3, MAX_BYTES / 1024**3
            raise DataError(f"{where} would take {size:.1f} GiB, more than the {most:.0f} GiB that are read at most")
        of_labels = archive.getinfo(f"{y}.npy")
        with archive.open(of_labels) as stream:
            labels = read_labels(stream, f"{path}: {y}", of_labels.file_size, remedy)

    def samples(shape: Shape) -> Iterator[Array]:
        with open_npz(path, (x, y)) as (archive, _), archive.open(f"{x}.npy") as stream:
            yield from read_samples(stream, where, shape, info.file_size, _check_chunk)

    return _array_part(where, header, labels, samples, target)


def npy_part(path: Path, label: str | None, target: Target | None = None) -> Part:
    """The samples of an npy file with the labels of another one."""
    if label is None:
        raise SettingsError(f"name the .npy file with the labels of {path}", setting="label")
    of_labels = Path(label).expanduser()
    for file in (path, of_labels):
        if not file.is_file():
            raise DataError(f"{file}: no such file")
    with report_damage(str(of_labels), HOW_TO_SAVE), of_labels.open("rb") as stream:
        labels = read_labels(stream, str(of_labels), of_labels.stat().st_size, HOW_TO_SAVE)
    with report_damage(str(path), HOW_TO_SAVE), path.open("rb") as stream:
        header = read_header(stream)
        check_samples_header(str(path), header, path.stat().st_size - stream.tell(), HOW_TO_SAVE)

    def samples(shape: Shape) -> Iterator[Array]:
        with report_damage(str(path), HOW_TO_SAVE), path.open("rb") as stream:
            yield from read_samples(stream, str(path), shape, path.stat().st_size, _check_chunk)

    return _array_part(str(path), header, labels, samples, target)


def _array_part(
    where: str, header: Header, labels: Array, samples: Callable[[Shape], Iterator[Array]], target: Target | None
) -> Part:
    count, stored = header.shape[0], header.shape[1:]
    if count != len(labels):
        raise DataError(f"{where} has {count} samples, and there are {len(labels)} labels; give one label per sample")
    shape = target.shape if target is not None else channels_first(stored, where)

    def read() -> Iterator[Batch]:
        first = 0
        for x in samples(shape):
            yield x, labels[first : first + len(x)].tolist()
            first += len(x)

    return Part(where, count, shape, to_native(np.empty(0, header.dtype)).dtype, read)


def _check_chunk(chunk: Array, where: str, first: int) -> Array:
    return check_samples(chunk, where, first)
