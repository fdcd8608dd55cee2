"""Samples from npy, npz and csv files, read as untrusted input and in chunks, so that memory stays bounded.

Every reader yields arrays (n, …) of the model's input shape.
"""

import csv
import math
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import IO

import numpy as np

from spacenet.data.npy import (
    Header,
    check_length,
    check_no_objects,
    check_numbers,
    find_nonfinite,
    list_arrays,
    open_npz,
    read_header,
    report_damage,
    to_native,
)
from spacenet.data.preprocessing import Array
from spacenet.errors import DataError

MAX_SAMPLES = 1024
"""Samples in a chunk; fewer if these would take more than `CHUNK_BYTES`."""
CHUNK_BYTES = 16 * 1024**2
MAX_COLUMN_MAJOR = 256 * 1024**2
"""Bytes of an array in column-major order: it has to be read at once, because its samples are spread over the file."""
NUMBER_BYTES = 64
"""Bytes of a number in a csv file, at most on average."""
HOW_TO_SAVE = "save it with numpy.save(path, x)"
DELIMITERS = ",;\t "
ZIP_MAGIC = b"PK\x03\x04"

Shape = tuple[int, ...]


def samples_per_chunk(shape: Shape) -> int:
    """How many samples of this shape a chunk has."""
    return max(1, min(MAX_SAMPLES, CHUNK_BYTES // (8 * math.prod(shape))))


def read_npz(path: Path, shape: Shape) -> Iterator[Array]:
    """The samples in an archive: its array x, else x_test, else its only array."""
    with open_npz(path, ("x",)) as archive:
        held = list_arrays(archive)
        key = next((key for key in ("x", "x_test") if key in held), held[0] if len(held) == 1 else None)
        if key is None:
            raise DataError(f"{path}: holds {', '.join(held[:12]) or 'nothing'}; the array of samples must be named x")
        info = archive.getinfo(f"{key}.npy")
        with archive.open(info) as stream:
            where = f"{path}: {key}"
            header = read_header(stream)
            _check_header(where, header)
            check_length(where, header, info.file_size - stream.tell(), HOW_TO_SAVE)
            yield from _read_samples(stream, where, header, shape)


def read_npy(stream: IO[bytes], where: str, shape: Shape) -> Iterator[Array]:
    """The samples in a stream of npy bytes."""
    with report_damage(where, HOW_TO_SAVE):
        header = read_header(stream)
        _check_header(where, header)
        yield from _read_samples(stream, where, header, shape)


def read_csv(stream: IO[bytes], where: str, shape: Shape) -> Iterator[Array]:
    """One sample per line; a first line without any number is a header."""
    rows: list[Array] = []
    for row in _read_rows(stream, where, math.prod(shape)):
        rows.append(row)
        if len(rows) == samples_per_chunk(shape):
            yield np.stack(rows).reshape(-1, *shape)
            rows = []
    if rows:
        yield np.stack(rows).reshape(-1, *shape)


def _check_header(where: str, header: Header) -> None:
    check_no_objects(where, header)
    check_numbers(where, header)
    if any(length < 0 for length in header.shape):
        raise DataError(f"{where} has the shape {header.shape}; the file is damaged: {HOW_TO_SAVE}")


def _count_samples(where: str, found: Shape, shape: Shape) -> int:
    """The number of samples in an array; they may be flat, lack axes of length 1, or be one sample alone."""
    squeezed = tuple(length for length in shape if length != 1)
    if found[1:] in (shape, (math.prod(shape),)) or (found and tuple(n for n in found[1:] if n != 1) == squeezed):
        return found[0]
    if found in (shape, squeezed, (math.prod(shape),)):
        return 1
    channels_last = len(shape) == 3 and found[1:] == (*shape[1:], shape[0])
    remedy = ": move the channels to the front, x.transpose(0, 3, 1, 2)" if channels_last else ""
    raise DataError(f"{where}: samples have the shape {found[1:]}; the model takes {shape}{remedy}")


def _read_samples(stream: IO[bytes], where: str, header: Header, shape: Shape) -> Iterator[Array]:
    count, size = _count_samples(where, header.shape, shape), math.prod(shape) * header.dtype.itemsize
    source = _to_row_major(stream, where, header) if header.column_major else stream
    step = samples_per_chunk(shape)
    for first in range(0, count, step):
        number = min(step, count - first)
        content = source.read(number * size)
        if len(content) < number * size:
            raise DataError(f"{where}: ends after {first + len(content) // size} of its {count} samples; it is cut off")
        chunk = np.frombuffer(content, header.dtype).reshape(number, *shape)
        yield _convert(chunk, where, first)
    if stream.read(1):  # reading to the end also makes an archive compare its checksum
        raise DataError(f"{where}: has more bytes after its last sample; the file is damaged: {HOW_TO_SAVE}")


def _to_row_major(stream: IO[bytes], where: str, header: Header) -> IO[bytes]:
    """The values of an array in column-major order, in row-major order."""
    if header.claimed_bytes > MAX_COLUMN_MAJOR:
        raise DataError(
            f"{where}: is in column-major (Fortran) order, so {header.claimed_bytes / 1024**3:.1f} GiB would have to "
            "be read at once; save numpy.ascontiguousarray(x)"
        )
    content = stream.read(header.claimed_bytes)
    if len(content) < header.claimed_bytes:
        raise DataError(f"{where}: is cut off, {header.claimed_bytes - len(content)} bytes are missing")
    return BytesIO(np.frombuffer(content, header.dtype).reshape(header.shape, order="F").tobytes())


def _convert(chunk: Array, where: str, first: int) -> Array:
    """The chunk in a type that torch takes, floats with 32 bits. Raises `DataError` for values that are not finite."""
    chunk = to_native(chunk)
    if chunk.dtype.kind == "f":
        with np.errstate(over="ignore"):
            chunk = chunk.astype(np.float32)
    bad = find_nonfinite(chunk)
    if len(bad):
        raise DataError(f"{where}: row {first + bad[0]} has a value that is NaN, infinite or too large")
    return chunk


def _read_rows(stream: IO[bytes], where: str, length: int) -> Iterator[Array]:
    delimiter, row = "", 0
    for number, line in _read_lines(stream, where, length):
        text = line.decode("utf-8-sig", "replace").strip()
        if not text:
            continue
        first = not delimiter
        if first:
            delimiter = next((each for each in DELIMITERS if each in text), ",")
        cells = _split_line(text, delimiter, where, number)
        values = [_parse_number(cell) for cell in cells]
        if first and all(value is None for value in values):
            continue
        yield _to_row(cells, values, f"{where}, line {number}", row, length)
        row += 1


def _read_lines(stream: IO[bytes], where: str, length: int) -> Iterator[tuple[int, bytes]]:
    limit, number = max(64 * 1024, NUMBER_BYTES * length), 0
    while True:
        with report_damage(where, "write numbers, one sample per line"):
            line = stream.readline(limit + 1)
        number += 1
        if not line:
            return
        if number == 1 and line.startswith(ZIP_MAGIC):
            raise DataError(f"{where}: is an archive, not csv or npy; pass the name of the .npz file")
        if len(line) > limit:
            raise DataError(f"{where}, line {number}: is too long for {length} numbers; write one sample per line")
        yield number, line


def _split_line(text: str, delimiter: str, where: str, number: int) -> list[str]:
    try:
        return next(csv.reader([text], delimiter=delimiter, skipinitialspace=True))
    except csv.Error as error:
        raise DataError(f"{where}, line {number}: not csv ({error})") from error


def _parse_number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _to_row(cells: list[str], values: list[float | None], where: str, row: int, length: int) -> Array:
    numbers = [value for value in values if value is not None]
    if len(numbers) < len(values):
        wrong = cells[values.index(None)]
        hint = "; a header has no numbers" if row == 0 else ""
        raise DataError(f"{where} (row {row}): {wrong[:40]!r} is not a number{hint}")
    if len(numbers) != length:
        raise DataError(f"{where} (row {row}): has {len(numbers)} numbers; the model takes {length}")
    return _convert(np.array([numbers]), where, row).reshape(length)
