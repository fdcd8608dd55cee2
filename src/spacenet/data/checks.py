"""The checks that all inputs and labels pass, wherever they come from: arrays, files, data sets or requests."""

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from spacenet.errors import DataError

if TYPE_CHECKING:
    from spacenet.data.preprocessing import Array

log = logging.getLogger("spacenet")
MAX_MAGNITUDE = 1e15
"""Squares of larger numbers, added up over a sample, would not fit into 32 bits."""
BLOCK = 4096
"""Samples that are checked at a time."""
MAX_LABEL = 1000
"""Characters of a label."""
MAX_LABELS_BYTES = 64 * 1024**2
"""Numpy gives every text of an array the space of the longest."""
CHANNELS, SMALLEST_SIDE = (1, 3, 4), 8
"""Of images whose channels come last."""
PIXEL_SCALE = 1 / 255
"""The scale of data sets and models whose inputs are bytes."""


def check_samples(x: "Array", where: str, first: int | None = None) -> "Array":
    """The samples in a type that torch takes. Raises `DataError` unless all values are numbers to compute with.

    `first` is the row of the first sample, if these are only a part of all samples.
    """
    check_numbers(where, x.dtype)
    if not x.ndim:
        raise DataError(f"{where} is a single number; give samples in rows, (n, …)")
    x = to_native(x)
    bad = find_nonfinite(x)
    if len(bad):
        count = f" in {len(bad)} of its {len(x)} samples" if first is None else ""
        row = bad[0] + (first or 0)
        raise DataError(f"{where} has NaN or infinite values{count}, the first in row {row}; remove or replace them")
    if x.size and x.dtype.itemsize > 1:
        axes = tuple(range(1, x.ndim))
        largest = np.maximum(x.max(axis=axes).astype(np.float64), -x.min(axis=axes).astype(np.float64))
        row = int(largest.argmax())
        if largest[row] > MAX_MAGNITUDE:
            value = f"row {row + (first or 0)} has a value of magnitude {largest[row]:.1e}"
            raise DataError(f"{where}: {value}; at most {MAX_MAGNITUDE:.0e} is possible: rescale or remove it")
    return x


def channels_first(shape: tuple[int, ...], where: str) -> tuple[int, ...]:
    """The shape of a sample with the channels of an image in front: (h, w, c) becomes (c, h, w) where that is certain.

    It is where the last axis has the length of channels (1, 3 or 4) and the others are too long for that.
    """
    if len(shape) != 3 or shape[2] not in CHANNELS or min(shape[:2]) < SMALLEST_SIDE:
        return shape
    moved = (shape[2], *shape[:2])
    texts = ("×".join(map(str, each)) for each in (shape, moved))
    log.info("%s: images of the shape %s have their channels last; they are moved to the front, %s", where, *texts)
    return moved


def move_channels(x: "Array", where: str) -> "Array":
    """The samples with the channels of images in front, (n, c, h, w); see `channels_first`."""
    return x if channels_first(x.shape[1:], where) == x.shape[1:] else np.moveaxis(x, -1, 1)


def match_channels(x: "Array", shape: tuple[int, ...]) -> "Array":
    """The samples with their channels in front if they come last and a model takes images of this shape, (c, h, w)."""
    last = len(shape) == 3 and x.shape[1:] != shape and x.shape[1:] == (*shape[1:], shape[0])
    return np.moveaxis(x, -1, 1) if last else x


def check_numbers(where: str, dtype: "np.dtype[np.generic]") -> None:
    """Raise `DataError` unless values of this type are numbers."""
    if dtype.kind not in "biuf":
        raise DataError(f"{where} holds {dtype} values; numbers are needed (integers or floats)")


def looks_scaled(x: "Array", scale: float) -> bool:
    """Whether values lie between 0 and 1 although the scale is one for bytes (0 to 255): probably a mistake."""
    if scale != PIXEL_SCALE or x.dtype.kind != "f":
        return False
    return bool(((x >= 0) & (x <= 1)).all()) and bool((x % 1 != 0).any())


def find_nonfinite(x: "Array") -> "Array":
    """The indices of the rows with NaN or infinite values."""
    if x.dtype.kind != "f" or not x.size or (len(x) <= BLOCK and np.isfinite(x).all()):
        return np.zeros(0, dtype=np.int64)
    axes = tuple(range(1, x.ndim))
    # In blocks: a mask of everything would take a quarter of the memory of the samples.
    blocks = (x[first : first + BLOCK] for first in range(0, len(x), BLOCK))
    return np.flatnonzero(~np.concatenate([np.isfinite(block).all(axis=axes) for block in blocks]))


def to_native(array: "Array") -> "Array":
    """The same values in a type that torch takes: this machine's byte order, and no floats wider than 64 bits."""
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        return array.astype(np.float64)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def check_labels(y: "Array", where: str) -> "Array":
    """Labels that can be kept, in this machine's byte order; bytes become strings. Others raise `DataError`."""
    if y.dtype.kind == "O":
        y = _from_objects(y, where)
    check_label_type(where, y.dtype, y.shape)
    if y.dtype.kind == "S":
        try:
            y = np.char.decode(y, "utf-8")
        except UnicodeDecodeError as error:
            raise DataError(f"{where} holds bytes that are not text ({error.reason})") from error
    y = to_native(y)
    if y.dtype.kind == "U":
        _check_texts(y, where)
    elif y.dtype.kind in "uf" and len(y) and not float(np.abs(y).max()) < 2**63:  # false for NaN too
        raise DataError(f"{where} has labels that are not finite or too large")
    return y


def _from_objects(y: "Array", where: str) -> "Array":
    labels = [label.item() if hasattr(label, "item") else label for label in y.ravel().tolist()]
    kinds = set(map(type, labels))
    if len(kinds) != 1 or not kinds <= {str, int, float, bool}:
        raise DataError(f"{where} holds labels of several types; use integers only, or strings only")
    return np.array(labels).reshape(y.shape)


def check_label_type(where: str, dtype: "np.dtype[np.generic]", shape: tuple[int, ...]) -> None:
    """Raise `DataError` unless an array of this type and shape can hold labels."""
    if dtype.kind not in "biufUS" or dtype.itemsize == 0:
        raise DataError(f"{where} holds {dtype} labels; integers or strings are needed, e.g. y.astype(str)")
    if len(shape) != 1:
        raise DataError(f"{where} has the shape {shape}; it needs one label per sample, (n,)")


def check_same_type(new: Iterable[Any], known: Iterable[Any]) -> None:
    """Raise `DataError` if labels look like known ones but are of another type: 3 and "3" would be two classes."""
    types = {_plain(label): type(label) for label in known}
    for label in new:
        if types.get(_plain(label), type(label)) is not type(label):
            kind = types[_plain(label)].__name__
            raise DataError(
                f"the label {label!r} is of the type {type(label).__name__}, and the model knows {kind} labels; "
                f"use the same type, e.g. y.astype({kind})"
            )


def _plain(label: object) -> str:
    """The same text for 3, 3.0 and "3"."""
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)


def _check_texts(y: "Array", where: str) -> None:
    if y.dtype.itemsize > 4 * MAX_LABEL or y.nbytes > MAX_LABELS_BYTES:
        longest = y.dtype.itemsize // 4
        raise DataError(f"{where} has labels of up to {longest} characters; at most {MAX_LABEL} are possible")
    codes = y.view(np.uint32).reshape(len(y), y.dtype.itemsize // 4)  # not -1: there may be none
    bad = ((codes >= 0xD800) & (codes <= 0xDFFF)) | (codes > 0x10FFFF)
    # Zeros fill up shorter texts, so one that comes before another character is part of the label.
    bad[:, :-1] |= (codes[:, :-1] == 0) & (codes[:, 1:] != 0)
    rows = np.flatnonzero(bad.any(axis=1))
    if len(rows):
        raise DataError(f"{where}: the label in row {rows[0]} has characters that are not text")
