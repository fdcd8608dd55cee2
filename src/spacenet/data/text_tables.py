"""CSV tables with a column of texts, for encoders that take texts. A text in quotation marks may have several lines."""

import csv
from collections.abc import Iterator, Sequence
from io import BufferedReader, TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from spacenet.data.parts import Batch, Part, Shape
from spacenet.data.preprocessing import Array
from spacenet.data.tables import Columns, Record, check_is_text, count_lines, find_columns, missing_label, take_label
from spacenet.errors import DataError

STEP = 256
"""Texts that are read at a time."""
QUOTES = "; put texts in quotation marks"
DELIMITERS = ",;\t"


def text_part(path: Path, label: str | None, drop: Sequence[str] = (), header: bool | None = None) -> Part:
    """The labeled texts of a CSV file."""
    with path.open("rb") as stream:
        columns, _ = _open_table(stream, str(path), label, drop, header)
    if columns.label is None:
        raise missing_label(str(path), columns)

    def read() -> Iterator[Batch]:
        with path.open("rb") as stream:
            found, records = _open_table(stream, str(path), label, drop, header)
            yield from _read_batches(records, found, str(path))

    return Part(str(path), count_lines(path), (), np.dtype(object), read, "rows", columns.input_names, True)


def read_texts(
    stream: "BufferedReader[Any]",
    where: str,
    shape: Shape,
    label: str | None = None,
    drop: Sequence[str] = (),
    header: bool | None = None,
) -> Iterator[Array]:
    """The texts of a table in chunks. A column of labels is left out."""
    columns, records = _open_table(stream, where, label, drop, header)
    without = Columns(columns.count, columns.names, columns.inputs)  # labels may be missing here
    for texts, _ in _read_batches(records, without, where):
        yield texts


def _open_table(
    stream: "BufferedReader[Any]", where: str, label: str | None, drop: Sequence[str], header: bool | None
) -> tuple[Columns, Iterator[Record]]:
    check_is_text(stream.peek(4), where)
    columns, records = find_columns(_read_records(stream, where), where, label, drop, header, index=False)
    if len(columns.inputs) != 1:
        shown = ", ".join(columns.describe(number) for number in columns.inputs)
        raise DataError(
            f"{where}: has {len(columns.inputs)} columns of inputs ({shown}); the encoder takes one, of texts.",
            cli="--label names the one with the labels, --drop leaves others out.",
            python="label names the one with the labels, drop leaves others out.",
        )
    return columns, records


def _read_records(stream: "BufferedReader[Any]", where: str) -> Iterator[Record]:
    """The lines that are not empty, cut into cells; the number is that of a record's last line."""
    text = TextIOWrapper(stream, encoding="utf-8-sig", newline="")
    number = 0
    try:
        first = text.readline()
        delimiter = next((each for each in DELIMITERS if each in first), ",")
        lines = csv.reader(_with_first(first, text), delimiter=delimiter, skipinitialspace=True, strict=True)
        for cells in lines:
            number = lines.line_num
            if cells:
                yield number, cells
    except csv.Error as error:
        place = f"{where}, after line {number}"
        raise DataError(f"{place}: not csv ({error}); is a quotation mark left open, or a text too long?") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{where}: is not text in UTF-8 ({error.reason}); save it in this encoding") from error
    finally:
        if not stream.closed:
            text.detach()  # or it would close the stream


def _with_first(first: str, text: TextIOWrapper) -> Iterator[str]:
    if first:
        yield first
    yield from text


def _read_batches(records: Iterator[Record], columns: Columns, where: str) -> Iterator[tuple[Array, list[str]]]:
    (column,) = columns.inputs
    row = 0
    while batch := list(islice(records, STEP)):
        texts, labels = np.empty(len(batch), object), []
        for place, (line, cells) in enumerate(batch):
            labels.append(take_label(cells, columns, f"{where}, line {line} (row {row + place})", QUOTES))
            texts[place] = cells[column]
        yield texts, labels
        row += len(batch)
