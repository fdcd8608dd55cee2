"""Samples from npy, npz and csv, chunk by chunk: memory does not depend on how many there are, nor does it trust them.

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
"""Samples of a chunk; fewer where samples are so large that they would take more than `CHUNK_BYTES`."""
CHUNK_BYTES = 16 * 1024**2
BY_COLUMNS = 256 * 1024**2
"""Bytes of an array stored column by column: it has to be read whole, since its samples lie all over it."""
NUMBER_BYTES = 64
"""Bytes that a number in a csv file may take on average."""
SAVE = "save it with numpy.save(path, x)"
DELIMITERS = ",;\t "
ZIP_MAGIC = b"PK\x03\x04"

Shape = tuple[int, ...]


def samples_per_chunk(shape: Shape) -> int:
    """How many samples of this shape are read at once."""
    return max(1, min(MAX_SAMPLES, CHUNK_BYTES // (8 * math.prod(shape))))


def read_npz(path: Path, shape: Shape) -> Iterator[Array]:
    """The samples in an archive: its array x, else x_test, else the only one."""
    with open_npz(path, ("x",)) as archive:
        held = list_arrays(archive)
        key = next((key for key in ("x", "x_test") if key in held), held[0] if len(held) == 1 else None)
        if key is None:
            raise DataError(f"{path}: holds {', '.join(held[:12]) or 'nothing'}; name the array of samples x")
        info = archive.getinfo(f"{key}.npy")
        with archive.open(info) as stream:
            where = f"{path}: {key}"
            header = read_header(stream)
            _check_header(where, header)
            check_length(where, header, info.file_size - stream.tell(), SAVE)
            yield from _samples(stream, where, header, shape)


def read_npy(stream: IO[bytes], where: str, shape: Shape) -> Iterator[Array]:
    """The samples in npy bytes from anywhere."""
    with report_damage(where, SAVE):
        header = read_header(stream)
        _check_header(where, header)
        yield from _samples(stream, where, header, shape)


def read_csv(stream: IO[bytes], where: str, shape: Shape) -> Iterator[Array]:
    """One sample per line; a first line without any number is a heading."""
    rows: list[Array] = []
    for row in _csv_rows(stream, where, math.prod(shape)):
        rows.append(row)
        if len(rows) == samples_per_chunk(shape):
            yield np.stack(rows).reshape(-1, *shape)
            rows = []
    if rows:
        yield np.stack(rows).reshape(-1, *shape)


# npy


def _check_header(where: str, header: Header) -> None:
    check_no_objects(where, header)
    check_numbers(where, header)
    if any(length < 0 for length in header.shape):
        raise DataError(f"{where} has the shape {header.shape}; the file is damaged: {SAVE}")


def _count(where: str, found: Shape, shape: Shape) -> int:
    """How many samples of a shape there are in an array: as they are, flat, with or without axes of 1, or just one."""
    bare = tuple(length for length in shape if length != 1)
    if found[1:] in (shape, (math.prod(shape),)) or (found and tuple(n for n in found[1:] if n != 1) == bare):
        return found[0]
    if found in (shape, bare, (math.prod(shape),)):
        return 1
    last = len(shape) == 3 and found[1:] == (*shape[1:], shape[0])
    remedy = ": move the channels to the front, x.transpose(0, 3, 1, 2)" if last else ""
    raise DataError(f"{where}: samples have the shape {found[1:]}; the model takes {shape}{remedy}")


def _samples(stream: IO[bytes], where: str, header: Header, shape: Shape) -> Iterator[Array]:
    count, size = _count(where, header.shape, shape), math.prod(shape) * header.dtype.itemsize
    source = _turned(stream, where, header) if header.column_major else stream
    step = samples_per_chunk(shape)
    for first in range(0, count, step):
        number = min(step, count - first)
        content = source.read(number * size)
        if len(content) < number * size:
            raise DataError(f"{where}: ends after {first + len(content) // size} of its {count} samples; it is cut off")
        chunk = np.frombuffer(content, header.dtype).reshape(number, *shape)
        yield _finite(chunk, where, first)
    if stream.read(1):  # reading to the end also makes an archive compare its checksum
        raise DataError(f"{where}: goes on after its last sample; the file is damaged: {SAVE}")


def _turned(stream: IO[bytes], where: str, header: Header) -> IO[bytes]:
    """The values of an array that is stored column by column, row by row."""
    if header.claimed_bytes > BY_COLUMNS:
        raise DataError(
            f"{where}: is stored column by column (Fortran's order), so {header.claimed_bytes / 1024**3:.1f} GiB would "
            "have to be read at once; save numpy.ascontiguousarray(x)"
        )
    content = stream.read(header.claimed_bytes)
    if len(content) < header.claimed_bytes:
        raise DataError(f"{where}: is cut off, {header.claimed_bytes - len(content)} bytes are missing")
    return BytesIO(np.frombuffer(content, header.dtype).reshape(header.shape, order="F").tobytes())


def _finite(chunk: Array, where: str, first: int) -> Array:
    """The chunk in a type that a network takes; floats become 32 bits wide, as they do in the network."""
    chunk = to_native(chunk)
    if chunk.dtype.kind == "f":
        with np.errstate(over="ignore"):
            chunk = chunk.astype(np.float32)
    bad = find_nonfinite(chunk)
    if len(bad):
        raise DataError(f"{where}: row {first + bad[0]} has a value that is NaN, infinite or too large")
    return chunk


# csv


def _csv_rows(stream: IO[bytes], where: str, length: int) -> Iterator[Array]:
    delimiter, row = "", 0
    for number, line in _lines(stream, where, length):
        text = line.decode("utf-8-sig", "replace").strip()
        if not text:
            continue
        first = not delimiter
        if first:
            delimiter = next((each for each in DELIMITERS if each in text), ",")
        parts = _parts(text, delimiter, where, number)
        values = [_number(part) for part in parts]
        if first and all(value is None for value in values):
            continue
        yield _row(parts, values, f"{where}, line {number}", row, length)
        row += 1


def _lines(stream: IO[bytes], where: str, length: int) -> Iterator[tuple[int, bytes]]:
    most, number = max(64 * 1024, NUMBER_BYTES * length), 0
    while True:
        with report_damage(where, "give numbers, one sample per line"):
            line = stream.readline(most + 1)
        number += 1
        if not line:
            return
        if number == 1 and line.startswith(ZIP_MAGIC):
            raise DataError(f"{where}: this is an archive, not csv or npy; give the name of the .npz file")
        if len(line) > most:
            raise DataError(f"{where}, line {number}: is longer than {length} numbers can be; one sample per line")
        yield number, line


def _parts(text: str, delimiter: str, where: str, number: int) -> list[str]:
    try:
        return next(csv.reader([text], delimiter=delimiter, skipinitialspace=True))
    except csv.Error as error:
        raise DataError(f"{where}, line {number}: not csv ({error})") from error


def _number(part: str) -> float | None:
    try:
        return float(part)
    except ValueError:
        return None


def _row(parts: list[str], values: list[float | None], where: str, row: int, length: int) -> Array:
    numbers = [value for value in values if value is not None]
    if len(numbers) < len(values):
        wrong = parts[values.index(None)]
        hint = "; a heading has no numbers" if row == 0 else ""
        raise DataError(f"{where} (row {row}): {wrong[:40]!r} is not a number{hint}")
    if len(numbers) != length:
        raise DataError(f"{where} (row {row}): has {len(numbers)} numbers; the model takes {length}")
    return _finite(np.array([numbers]), where, row).reshape(length)
