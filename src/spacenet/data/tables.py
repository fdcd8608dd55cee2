"""CSV tables: one sample per line, read in chunks. The same reader serves learning and predicting.

The first line is a header if `header` says so, else if one of these holds:
- the label's column is named in it;
- it has a text where the line below has a number;
- it has no number at all;
- it numbers the columns, 0, 1, 2, …, as a data frame without names writes them: at least three of them, or after an
  empty cell.
A column whose name is empty is the index of a data frame and is left out.
"""

import csv
import math
from array import array
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import IO

import numpy as np

from spacenet.data.arrays import report_damage, samples_per_chunk
from spacenet.data.checks import MAX_MAGNITUDE
from spacenet.data.files import GZIP_MAGIC
from spacenet.data.parts import Batch, Part, Shape, Target
from spacenet.data.preprocessing import Array
from spacenet.errors import DataError, SettingsError

NUMBER_BYTES = 64
"""Bytes of a number, at most on average."""
MAX_LINE = 16 * 1024**2
"""Bytes of a line, where it is not known how many numbers it should have."""
DELIMITERS = ",;\t "
ZIP_MAGIC = b"PK\x03\x04"
PARQUET_MAGIC = b"PAR1"
MISSING = ("", "na", "n/a", "nan", "null", "none", "?")
FILL_IN = "fill it in or remove the row, e.g. with pandas: frame.fillna(frame.median(numeric_only=True)).to_csv(…)"
TO_NUMBERS = "turn it into numbers, e.g. with pandas.get_dummies(frame, columns=[…])"
Record = tuple[int, list[str]]
"""The number of a line, and its cells."""


@dataclass(frozen=True)
class Columns:
    """The columns of a table: which are inputs, and which one has the labels."""

    count: int
    names: tuple[str, ...] | None
    inputs: tuple[int, ...]
    label: int | None = None

    @property
    def input_names(self) -> tuple[str, ...] | None:
        """The names of the inputs, if the table has a header."""
        return None if self.names is None else tuple(self.names[number] for number in self.inputs)

    def describe(self, number: int) -> str:
        """A column as messages name it."""
        return f"column {number}" if self.names is None else f"column {self.names[number]!r}"


def choose_columns(
    where: str, names: Sequence[str] | None, count: int, label: str | None = None, drop: Sequence[str] = ()
) -> Columns:
    """Find the label and the inputs among the columns; a column is given by its name, or by its number from 0."""
    texts = None if names is None else tuple(names)
    of_label = None if label is None else find_column(where, texts, count, label, "label")
    left_out = {find_column(where, texts, count, each, "drop") for each in drop}
    left_out |= {number for number, name in enumerate(texts or ()) if name == "" or name.startswith("Unnamed: ")}
    inputs = tuple(number for number in range(count) if number not in {*left_out, of_label})
    if not inputs:
        raise DataError(f"{where}: has no columns besides the label")
    return Columns(count, texts, inputs, of_label)


def find_column(where: str, names: Sequence[str] | None, count: int, wanted: str, setting: str) -> int:
    """The position of a column."""
    if names is not None and wanted in names:
        return names.index(wanted)
    if wanted.removeprefix("-").isdecimal() and -count <= int(wanted) < count:
        return int(wanted) % count
    shown = f"0 to {count - 1}; there is no header with names" if names is None else show_names(names)
    raise SettingsError(f"{where} has no column {wanted!r}; its columns are {shown}", setting=setting)


def show_names(names: Sequence[str]) -> str:
    """The names of columns in a message."""
    return ", ".join(names[:20]) + (", …" if len(names) > 20 else "")


def csv_part(
    path: Path, label: str | None, drop: Sequence[str] = (), header: bool | None = None, target: Target | None = None
) -> Part:
    """The labeled samples of a CSV file."""
    with path.open("rb") as stream:
        columns, _ = open_table(stream, str(path), MAX_LINE, label, drop, header)
    if columns.label is None:
        raise missing_label(str(path), columns)
    shape = target_shape(str(path), columns, target)

    def read() -> Iterator[Batch]:
        with path.open("rb") as stream, report_damage(str(path), "write numbers, one sample per line"):
            found, records = open_table(stream, str(path), MAX_LINE, label, drop, header)
            for x, labels in read_batches(records, found, str(path), samples_per_chunk(shape)):
                yield x.reshape(-1, *shape), labels

    return Part(str(path), count_lines(path), shape, np.dtype(np.float32), read, "rows", columns.input_names, True)


def missing_label(where: str, columns: Columns) -> SettingsError:
    """The error where no column is named that has the labels."""
    shown = f"0 to {columns.count - 1}" if columns.names is None else show_names(columns.names)
    return SettingsError(f"name the column of {where} that has the labels; its columns are {shown}", setting="label")


def target_shape(where: str, columns: Columns, target: Target | None) -> Shape:
    """The shape of a table's samples: that of the model, if there is one."""
    count = len(columns.inputs)
    if target is None:
        return (count,)
    if math.prod(target.shape) != count:
        raise DataError(f"{where}: has {count} columns of inputs; the model takes {math.prod(target.shape)}")
    return target.shape


def to_numbers(values: Array, where: str, first: int = 0) -> Array:
    """A column as numbers with 32 bits; `first` is the row of its first value. Others raise `DataError`."""
    if values.dtype.kind == "O":  # with missing values, numbers are objects
        missing = [row for row, value in enumerate(values.tolist()) if value is None or value != value]
        if missing:
            raise DataError(f"{where}, row {first + missing[0]}: the value is missing; {FILL_IN}")
        with suppress(ValueError, TypeError):
            values = np.array(values.tolist())
    if values.dtype.kind not in "biuf":
        raise DataError(
            f"{where}, row {first}: {str(values[0])[:40]!r} is not a number; {TO_NUMBERS}.",
            cli="--drop leaves a column out.",
            python="drop leaves a column out.",
        )
    bad = np.flatnonzero(~(np.abs(values.astype(np.float64)) <= MAX_MAGNITUDE))
    if len(bad):
        word = "missing (NaN)" if np.isnan(values[bad[0]]) else "infinite or too large"
        raise DataError(f"{where}, row {first + bad[0]}: the value is {word}; {FILL_IN}")
    return values.astype(np.float32)


def count_lines(path: Path) -> int:
    """How many lines a file has, at most."""
    with path.open("rb") as stream:
        return 1 + sum(block.count(b"\n") for block in iter(partial(stream.read, 1 << 20), b""))


def read_csv(
    stream: IO[bytes],
    where: str,
    shape: Shape,
    label: str | None = None,
    drop: Sequence[str] = (),
    header: bool | None = None,
) -> Iterator[Array]:
    """The samples of a table in chunks, for a model that takes this shape. A column of labels is left out."""
    length = math.prod(shape)
    limit = max(64 * 1024, NUMBER_BYTES * length)
    with report_damage(where, "write numbers, one sample per line"):
        columns, records = open_table(stream, where, limit, label, drop, header, length)
        columns = replace(columns, label=None)  # labels may be missing here
        for x, _ in read_batches(records, columns, where, samples_per_chunk(shape)):
            yield x.reshape(-1, *shape)


def open_table(
    stream: IO[bytes],
    where: str,
    limit: int,
    label: str | None = None,
    drop: Sequence[str] = (),
    header: bool | None = None,
    length: int | None = None,
) -> tuple[Columns, Iterator[Record]]:
    """The columns of a table, found from its first two lines, and the records that hold samples."""
    with report_damage(where, "write numbers, one sample per line"):
        return find_columns(_read_records(stream, where, limit, length), where, label, drop, header, length)


def find_columns(
    records: Iterator[Record],
    where: str,
    label: str | None,
    drop: Sequence[str],
    header: bool | None,
    length: int | None = None,
    index: bool = True,
) -> tuple[Columns, Iterator[Record]]:
    """The columns of the table with these lines, and the lines without a header.

    `index`: the first column may be an index without a name in the header.
    """
    first = list(islice(records, 2))
    if not first:
        raise DataError(f"{where}: holds no samples; write one per line")
    cells = [cell.strip() for cell in first[0][1]]
    has_header = is_header(cells, first[1][1] if len(first) > 1 else None, label) if header is None else header
    if has_header and len(first) == 1:
        raise DataError(f"{where}: holds no samples; there is only a header")
    count = len(cells)
    if index and has_header and len(first[1][1]) == count + 1:  # R leaves the name of the index out
        cells, count = ["", *cells], count + 1
    columns = choose_columns(where, cells if has_header else None, count, label, drop)
    if length is not None and len(columns.inputs) != length:
        place = f"{where}, line {first[has_header][0]} (row 0)"
        raise DataError(
            f"{place}: has {len(columns.inputs)} numbers; the model takes {length}.",
            cli="--label and --drop name columns that are no inputs." if len(columns.inputs) > length else "",
        )
    return columns, chain(first[has_header:], records)


def is_header(first: Sequence[str], second: Sequence[str] | None, label: str | None = None) -> bool:
    """Whether the first line of a table names its columns; see above."""
    if label is not None and label in first and not label.removeprefix("-").isdecimal():
        return True
    numbers = [_is_number(cell) for cell in first]
    if second is not None and any(
        cell and not number and _is_number(below) for cell, number, below in zip(first, numbers, second, strict=False)
    ):
        return True
    named = [cell for cell, number in zip(first, numbers, strict=True) if number]
    if not named:
        return True
    counted = named == [str(number) for number in range(len(named))]
    return counted and (len(named) >= 3 or first[0] == "")


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _read_records(stream: IO[bytes], where: str, limit: int, length: int | None) -> Iterator[Record]:
    """The lines that are not empty, cut into cells. A line is not read beyond its limit."""
    delimiter = ""
    for number, line in enumerate(iter(partial(stream.readline, limit + 1), b""), start=1):
        if number == 1:
            check_is_text(line, where)
        if len(line) > limit:
            expected = f"{length} numbers" if length is not None else "one sample"
            raise DataError(f"{where}, line {number}: is too long for {expected}; write one sample per line")
        text = line.decode("utf-8" if number > 1 else "utf-8-sig", "replace").strip(" \r\n")
        if not text or text.isspace():
            continue
        delimiter = delimiter or next((each for each in DELIMITERS if each in text), ",")
        if '"' not in text:
            yield number, text.split() if delimiter == " " else text.split(delimiter)
            continue
        try:
            yield number, next(csv.reader([text], delimiter=delimiter, skipinitialspace=True, strict=True))
        except csv.Error as error:
            place = f"{where}, line {number}"
            raise DataError(f"{place}: not csv ({error}); is a quotation mark left open?") from error


def check_is_text(line: bytes, where: str) -> None:
    """Raise `DataError` if a file's first line shows that it is something else than csv."""
    if line.startswith((ZIP_MAGIC, PARQUET_MAGIC)):
        kind = ".npz" if line.startswith(ZIP_MAGIC) else ".parquet"
        raise DataError(f"{where}: is an archive, not csv or npy; pass the name of the {kind} file")
    if line.startswith(GZIP_MAGIC):
        raise DataError(f"{where}: is compressed with gzip; unpack it first, with gunzip")


def read_batches(
    records: Iterator[Record], columns: Columns, where: str, step: int
) -> Iterator[tuple[Array, list[str]]]:
    """The inputs and labels of records, `step` of them at a time."""
    left_out = sorted(set(range(columns.count)) - set(columns.inputs), reverse=True)
    row = 0
    while True:
        values, labels, lines = array("d"), list[str](), array("q")
        for line, cells in islice(records, step):
            labels.append(take_label(cells, columns, f"{where}, line {line} (row {row + len(lines)})"))
            lines.append(line)
            for number in left_out:
                del cells[number]
            try:
                values.extend(map(float, cells))
            except ValueError:
                raise _explain(cells, columns, where, line, row + len(lines) - 1) from None
        if not lines:
            return
        yield _check(np.frombuffer(values).reshape(len(lines), -1), columns, where, lines, row), labels
        row += len(lines)


def take_label(cells: Sequence[str], columns: Columns, place: str, hint: str = "") -> str:
    """The label of a line, if labels are needed. Raises `DataError` where it or a cell is missing."""
    if len(cells) != columns.count:
        raise DataError(f"{place}: has {len(cells)} cells; the lines before have {columns.count}{hint}")
    if columns.label is None:
        return ""
    if not (label := cells[columns.label].strip()):
        raise DataError(
            f"{place}, {columns.describe(columns.label)}: the label is missing; fill it in or remove the row"
        )
    return label


def _explain(cells: Sequence[str], columns: Columns, where: str, line: int, row: int) -> DataError:
    """Why cells are not numbers."""
    at = next(number for number, cell in enumerate(cells) if not _is_number(cell))
    place, cell = f"{where}, line {line} (row {row}), {columns.describe(columns.inputs[at])}", cells[at].strip()
    if cell.lower() in MISSING:
        return DataError(f"{place}: the value is missing; {FILL_IN}")
    hint = " If this line names the columns, say so." if row == 0 and columns.names is None else ""
    return DataError(
        f"{place}: {cell[:40]!r} is not a number; {TO_NUMBERS}.{hint}",
        cli="--drop leaves a column out, --label names the one with the labels" + (", --header." if hint else "."),
        python="drop leaves a column out, label names the one with the labels" + (", header=True." if hint else "."),
    )


def _check(values: Array, columns: Columns, where: str, lines: Sequence[int], row: int) -> Array:
    """The values with 32 bits. Raises `DataError` for those that are not finite, or too large to compute with."""
    bad = np.argwhere(~(np.abs(values) <= MAX_MAGNITUDE))
    if len(bad):
        at, number = bad[0].tolist()
        place = f"{where}, line {lines[at]} (row {row + at}), {columns.describe(columns.inputs[number])}"
        if np.isnan(values[at, number]):
            raise DataError(f"{place}: the value is missing (NaN); {FILL_IN}")
        raise DataError(f"{place}: the value is infinite or too large ({values[at, number]:.3g}); rescale or remove it")
    return values.astype(np.float32)
