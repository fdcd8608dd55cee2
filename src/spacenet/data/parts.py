"""Labeled samples that come in parts (files, folders) and are read chunk by chunk into one array."""

import re
import zlib
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spacenet.data.arrays import Header
from spacenet.data.checks import CHANNELS, check_labels
from spacenet.data.memory import allocate
from spacenet.data.preprocessing import Array
from spacenet.encoders.encoder import Encoder
from spacenet.errors import DataError
from spacenet.utils.progress import track

Shape = tuple[int, ...]
Batch = tuple[Array, Sequence[Any]]
"""Some samples, and the label of each."""
WHOLE = re.compile(r"[+-]?\d{1,18}(\.0*)?")
"""A text that is an integer; data frames write 3.0 where a column has gaps."""
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


@dataclass(frozen=True)
class Target:
    """What a model takes: inputs of a shape and a scale; images of other sizes are resized if that is asked for, and
    with an encoder they are brought to its size anyway."""

    shape: Shape
    scale: float = 1.0
    resize: bool = False
    encoder: Encoder | None = None

    def shape_in(self, where: str, header: Header) -> Shape:
        """The shape of the samples in an array: that of the model's inputs, or for an encoder that of its images."""
        found = header.shape
        features = found[1:] == self.shape or found == self.shape or len(found) < 3
        if self.encoder is None or self.encoder.images is None or features:
            return self.shape
        if header.dtype != np.uint8:
            named = self.encoder.name
            raise DataError(f"{where}: holds {header.dtype}; the encoder {named} takes images as bytes (0 to 255)")
        shape = found[1:]
        if len(shape) == 3 and shape[0] not in (1, 3) and shape[2] in (1, 3):
            shape = (shape[2], *shape[:2])
        if len(shape) == 2 and shape[1] in CHANNELS:
            raise DataError(f"{where}: has the shape {found}; for a single image give x[None]")
        if (len(shape) == 2 or (len(shape) == 3 and shape[0] in (1, 3))) and min(shape) > 0:
            return shape
        needed = "(n, h, w), (n, 3, h, w) or (n, h, w, 3)"
        raise DataError(f"{where}: has the shape {found}; the encoder {self.encoder.name} takes images {needed}")


@dataclass(frozen=True)
class Part:
    """The labeled samples of one file or folder, not yet read."""

    where: str
    count: int
    """How many samples there are, at most."""
    shape: Shape
    dtype: "np.dtype[Any]"
    read: Callable[[], Iterator[Batch]]
    unit: str = "rows"
    columns: tuple[str, ...] | None = None
    """The names of a table's inputs, if it has a header."""
    written_labels: bool = False
    """Whether labels are texts that may stand for numbers, as in a CSV file."""


def read_parts(parts: Sequence[Part], progress: bool = False) -> tuple[Array, Array, int]:
    """The samples and labels of all parts, and a checksum of both.

    They are kept in memory up to a limit, and beyond it in a file that is mapped into memory; see
    `spacenet.data.memory`.
    """
    first = parts[0]
    for part in parts[1:]:
        check_alike(first, part)
    dtype = np.result_type(*(part.dtype for part in parts))
    x = allocate((sum(part.count for part in parts), *first.shape), dtype, first.where)
    labels, checksum, row = _Labels(), 0, 0
    for part in parts:
        with track(f"reading {part.where}", part.count, part.unit, progress) as advance:
            for samples, given in part.read():
                x[row : row + len(samples)] = samples
                labels.extend(given)
                checksum = zlib.crc32(np.ascontiguousarray(samples).data, checksum)
                row += len(samples)
                advance(len(samples))
    y = labels.to_array(f"{first.where}: the labels", any(part.written_labels for part in parts))
    return x[:row], y, zlib.crc32(y.tobytes(), checksum)


def check_alike(first: Part, other: Part) -> None:
    """Raise `DataError` unless the samples of two parts have the same shape, and tables the same columns."""
    if first.columns is not None and other.columns is not None and first.columns != other.columns:
        pairs = zip((*first.columns, "nothing"), (*other.columns, "nothing"), strict=False)
        one, two = next((pair for pair in pairs if pair[0] != pair[1]), ("", ""))
        raise DataError(f"{other.where}: its columns differ from those of {first.where}: {two!r} instead of {one!r}")
    if first.shape != other.shape:
        raise DataError(
            f"the samples of {first.where} have the shape {first.shape}, those of {other.where} {other.shape}; "
            "they must agree"
        )


class _Labels:
    """The labels of many samples: each one is kept once, and for each sample its number."""

    def __init__(self) -> None:
        self.numbers: dict[Any, int] = {}
        self.codes = array("q")

    def extend(self, labels: Sequence[Any]) -> None:
        numbers = self.numbers
        self.codes.extend(numbers.setdefault(label, len(numbers)) for label in labels)

    def to_array(self, where: str, written: bool) -> Array:
        """`written`: they are texts that may stand for numbers, as in a CSV file."""
        names = list(self.numbers)
        named = np.array(_parse([str(name) for name in names], where) if written else names, dtype=object)
        return check_labels(named, where)[np.frombuffer(self.codes, np.int64)]


def _parse(texts: Sequence[str], where: str) -> Sequence[Any]:
    """Texts as integers, if all of them are."""
    if all(WHOLE.fullmatch(text) for text in texts):
        return [int(float(text)) if "." in text else int(text) for text in texts]
    if all(NUMBER.fullmatch(text) for text in texts):
        shown = next(text for text in texts if not WHOLE.fullmatch(text))
        raise DataError(f"{where} are numbers such as {shown}; integers or words are needed, one for each class")
    return texts
