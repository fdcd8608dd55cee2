"""Data sets made from the user's own data: arrays, npz files, folders of images, and data sets of other libraries."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from spacenet.data.arrays import read_arrays
from spacenet.data.checks import check_labels, check_samples
from spacenet.data.dataset import Dataset
from spacenet.data.images import ImageFormat, list_images, read_header, read_image
from spacenet.data.preprocessing import Array
from spacenet.errors import DataError, SettingsError

KEYS = ("x_train", "y_train", "x_test", "y_test")
GRAYSCALE = ("1", "L", "LA")
"""Pillow's modes without color."""


class ItemSource(Protocol):
    """Anything with a length and items (x, y), such as a `torch.utils.data.Dataset`."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> Any: ...


def dataset_from_arrays(name: str, x: Any, y: Any, x_test: Any, y_test: Any, test_fraction: float) -> Dataset:
    """The data set in these arrays. Bytes are taken as pixels (0 to 255), other numbers as they are.

    Without test data, a fraction of each class is held out.
    """
    if (x_test is None) != (y_test is None):
        raise DataError(f"{name}: x_test and y_test belong together; pass both or neither")
    x, y = to_samples(x, f"{name}: x"), to_labels(y, f"{name}: y")
    if x_test is None:
        if not 0 < test_fraction < 1:
            raise SettingsError(f"{test_fraction} is out of range (more than 0, less than 1)", setting="test_fraction")
        return _make_dataset(name, x, y, x, y).hold_out(test_fraction)
    return _make_dataset(name, x, y, to_samples(x_test, f"{name}: x_test"), to_labels(y_test, f"{name}: y_test"))


def load_npz(path: Path) -> Dataset:
    """The data set in an npz archive of x_train, y_train, x_test and y_test, named after the file."""
    path = Path(path).expanduser()
    return replace(_make_dataset(str(path), *read_arrays(path, KEYS).values()), name=path.stem)


def dataset_from_folder(
    name: str, path: Path, test: Path | None, image_size: int | tuple[int, int] | None, test_fraction: float
) -> Dataset:
    """The images in a folder with one sub-folder per class; colored unless all of them are grayscale."""
    if test is None and _class_folders(path / "train") and _class_folders(path / "test"):
        path, test = path / "train", path / "test"
    parts = [_list_classes(folder) for folder in (path, test) if folder is not None]
    image_format = _choose_format([file for files, _ in parts for file in files], image_size)
    (x, y), *others = [
        (np.stack([read_image(file, image_format) for file in files]), labels) for files, labels in parts
    ]
    x_test, y_test = others[0] if others else (None, None)
    return dataset_from_arrays(name, x, y, x_test, y_test, test_fraction)


def dataset_from_items(name: str, source: ItemSource, test: ItemSource | None, test_fraction: float) -> Dataset:
    """The items (x, y) of a source, stacked into arrays."""
    x, y = _stack(source, name)
    x_test, y_test = (None, None) if test is None else _stack(test, f"{name}: test")
    return dataset_from_arrays(name, x, y, x_test, y_test, test_fraction)


def to_samples(values: Any, where: str) -> Array:
    """Arrays, tensors, data frames and lists as an array of finite numbers."""
    x = _to_array(values, where)
    if x.dtype.kind == "O":  # columns of several types, or one array for each sample
        x = _to_array(x.tolist(), where)
    return check_samples(x, where)


def to_labels(values: Any, where: str) -> Array:
    """One label per sample, as integers or strings; whole numbers that are stored as floats become integers."""
    # As objects first: numpy would turn a list of numbers and strings into strings.
    y = np.array(values, dtype=object) if isinstance(values, list | tuple) else _to_array(values, where)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    y = check_labels(y, where)
    if y.dtype.kind == "f":
        if not (y == np.floor(y)).all():
            raise DataError(f"{where} holds {y.dtype} labels; integers or strings are needed, e.g. y.astype(int)")
        y = y.astype(np.int64)
    return y


def _to_array(values: Any, where: str) -> Array:
    if hasattr(values, "detach"):  # a tensor, which may be on a GPU or part of a graph
        values = values.detach().cpu()
    try:
        return np.asarray(values)
    except (ValueError, TypeError, RuntimeError) as error:
        raise DataError(f"{where} cannot be converted to an array ({error})") from error


def _make_dataset(name: str, x_train: Array, y_train: Array, x_test: Array, y_test: Array) -> Dataset:
    are_bytes = x_train.dtype == np.uint8
    if are_bytes != (x_test.dtype == np.uint8):
        raise DataError(
            f"{name}: x_train holds {x_train.dtype} values and x_test {x_test.dtype}; bytes are scaled and others are "
            "not, so both must have the same type"
        )
    if (y_train.dtype.kind == "U") != (y_test.dtype.kind == "U"):
        raise DataError(f"{name}: y_train holds {y_train.dtype} labels and y_test {y_test.dtype}; use one type")
    return Dataset(name, x_train, y_train, x_test, y_test, scale=1 / 255 if are_bytes else 1.0)


# Folders of images


def _class_folders(path: Path) -> list[Path]:
    inside = path.iterdir() if path.is_dir() else ()
    return sorted(each for each in inside if each.is_dir() and not each.name.startswith("."))


def _list_classes(path: Path) -> tuple[list[Path], list[str]]:
    """The image files of all classes, and the class of each: the name of its folder."""
    folders = _class_folders(path)
    if not folders:
        problem = "has no sub-folders; put the images of each class into a folder of its own"
        raise DataError(f"{path}: {problem if path.is_dir() else 'no such folder'}")
    files = [(file, folder.name) for folder in folders for file in list_images(folder)]
    return [file for file, _ in files], [label for _, label in files]


def _choose_format(files: Sequence[Path], image_size: int | tuple[int, int] | None) -> ImageFormat:
    """The height and width asked for, or those that all images have."""
    sizes, modes = zip(*(read_header(file) for file in files), strict=True)
    if image_size is not None:
        height, width = (image_size, image_size) if isinstance(image_size, int) else image_size
        if height < 1 or width < 1:
            raise SettingsError(f"{image_size} is not a size in pixels", setting="image_size")
    else:
        width, height = sizes[0]
        for file, size in zip(files, sizes, strict=True):
            if size != sizes[0]:
                raise DataError(
                    f"{file} has {size[0]} × {size[1]} pixels, {files[0]} {width} × {height}.",
                    python="Pass image_size to bring all images to one size.",
                )
    shape = (height, width) if set(modes) <= set(GRAYSCALE) else (3, height, width)
    return ImageFormat(shape, resize=image_size is not None)


# Other libraries' data sets


def _stack(source: ItemSource, where: str) -> tuple[Array, list[Any]]:
    try:
        count = len(source)
    except TypeError as error:
        raise DataError(f"{where}: the data set has no length, so its samples cannot be counted") from error
    if not count:
        raise DataError(f"{where}: the data set is empty")
    x, y = None, []
    for row in range(count):
        try:
            sample, label = source[row]
        except (TypeError, ValueError) as error:
            raise DataError(f"{where}: item {row} is not a pair (x, y)") from error
        values = _to_array(sample, f"{where}: item {row}")
        if hasattr(sample, "getbands") and values.ndim == 3:  # Pillow's images come as height, width, channels
            values = values.transpose(2, 0, 1)
        if x is None:
            x = np.empty((count, *values.shape), values.dtype)
        if values.shape != x.shape[1:]:
            raise DataError(f"{where}: item {row} has the shape {values.shape}, item 0 {x.shape[1:]}; they must agree")
        if values.dtype != x.dtype:
            x = x.astype(np.promote_types(x.dtype, values.dtype))
        x[row] = values
        y.append(label.item() if hasattr(label, "item") else label)
    assert x is not None
    return x, y
