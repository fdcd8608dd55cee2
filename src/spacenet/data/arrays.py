"""Arrays in npy, npz and csv files, read as untrusted input: headers are checked before any value is read.

Samples are read in chunks (n, …) of the model's input shape, so that memory stays bounded.
"""

import csv
import math
import tokenize
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import IO, TypeVar

import numpy as np
from numpy.lib import format as npy

from spacenet.data.checks import check_label_type, check_labels, check_numbers, check_samples, find_nonfinite, to_native
from spacenet.data.files import GZIP_MAGIC
from spacenet.data.preprocessing import Array
from spacenet.errors import DataError

MAX_HEADER = 10_000
"""Bytes of a header; numpy has the same limit, but checks it after reading up to 4 GiB."""
MAX_BYTES = 4 * 1024**3
"""Of all arrays of an archive together. A zip file of a few MB can claim to hold terabytes."""
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
Item = TypeVar("Item")


@dataclass(frozen=True)
class Header:
    """Shape, type and order of an array."""

    shape: Shape
    dtype: "np.dtype[np.generic]"
    column_major: bool
    """Whether the first index varies fastest (Fortran order)."""

    @property
    def claimed_bytes(self) -> int:
        """Python integers do not overflow, so an impossible shape is noticed before numpy allocates memory for it."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_header(stream: IO[bytes]) -> Header:
    """Read the header; the values follow. Numpy raises many kinds of errors for a bad one: see `report_damage`."""
    version = npy.read_magic(stream)
    # The third version differs only for named fields, which no array here may have.
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"version {version} of the npy format")
    start = stream.read(2 if version == (1, 0) else 4)
    length = int.from_bytes(start, "little")
    if length > MAX_HEADER:
        raise ValueError(f"a header of {length} bytes")
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, column_major, dtype = read(BytesIO(start + stream.read(length)))
    return Header(tuple(shape), dtype, column_major)


def check_no_objects(where: str, header: Header) -> None:
    """Raise `DataError` for arrays of objects: reading them can run code."""
    if header.dtype.hasobject:
        raise DataError(
            f"{where} is an object array, which could run code when it is read, so it is not read; "
            "give all samples the same shape and convert it to a plain type, e.g. array.astype('float32')"
        )


def check_length(where: str, header: Header, found: int, remedy: str) -> None:
    """Raise `DataError` unless the values take as many bytes as the file has."""
    if header.claimed_bytes != found or any(length < 0 for length in header.shape):
        raise DataError(
            f"{where} claims to hold {header.shape} of {header.dtype} ({header.claimed_bytes} bytes) "
            f"but has {found} bytes; the file is damaged: {remedy}"
        )


@contextmanager
def report_damage(where: str, remedy: str) -> Iterator[None]:
    """Turn the errors of reading an array, or an archive of arrays, into a `DataError`."""
    try:
        yield
    except DataError:
        raise
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, SyntaxError, tokenize.TokenError) as error:
        raise DataError(f"{where}: damaged ({error}): {remedy}") from error
    except MemoryError as error:
        raise DataError(f"{where}: does not fit into memory; use fewer samples or a smaller type") from error
    except (NotImplementedError, RuntimeError) as error:
        raise DataError(f"{where}: encrypted or compressed in a way that cannot be read ({error}): {remedy}") from error
    except OSError as error:
        raise DataError(f"{where}: unreadable ({error.strerror or error})") from error


# Archives


def how_to_save(keys: Sequence[str]) -> str:
    """How to write an archive of such arrays, for error messages."""
    return f"save them with numpy.savez_compressed(path, {', '.join(f'{key}=…' for key in keys)})"


@contextmanager
def open_npz(path: Path, keys: Sequence[str]) -> Iterator[tuple[zipfile.ZipFile, list[str]]]:
    """Open an archive that should hold these arrays, and list those that it holds; errors become a `DataError`."""
    if not path.is_file():
        raise DataError(f"{path}: {'not a' if path.exists() else 'no such'} file; an npz archive is needed")
    with report_damage(str(path), how_to_save(keys)):
        if not zipfile.is_zipfile(path):
            raise DataError(f"{path}: not an npz archive (a zip of .npy arrays): {how_to_save(keys)}")
        with zipfile.ZipFile(path) as archive:
            yield archive, sorted(name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy"))


def read_arrays(path: Path, *choices: Sequence[str], optional: Sequence[str] = ()) -> dict[str, Array]:
    """Read the first of several choices of arrays that an archive holds, and those of the optional ones that it has.

    Names that begin with x are samples (numbers), all others are labels (integers or strings).
    """
    with open_npz(path, choices[0]) as (archive, held):
        keys = next((keys for keys in choices if set(keys) <= set(held)), None)
        if keys is None:
            missing = ", ".join(key for key in choices[0] if key not in held)
            shown = (", ".join(held[:12]) or "nothing") + (", …" if len(held) > 12 else "")
            raise DataError(f"{path}: has no {missing}; it holds {shown}: {how_to_save(choices[0])}")
        wanted = [*keys, *(key for key in optional if key in held)]
        claimed = sum(archive.getinfo(f"{key}.npy").file_size for key in wanted)
        if claimed > MAX_BYTES:
            raise DataError(
                f"{path}: its arrays would take {claimed / 1024**3:.1f} GiB in memory, more than the "
                f"{MAX_BYTES / 1024**3:.0f} GiB that spacenet reads; use fewer samples or a smaller type (e.g. uint8)"
            )
        return {key: _read_array(archive, path, key, how_to_save(keys)) for key in wanted}


def _read_array(archive: zipfile.ZipFile, path: Path, key: str, remedy: str) -> Array:
    where, info, is_x = f"{path}: {key}", archive.getinfo(f"{key}.npy"), key.startswith("x")
    with archive.open(info) as stream:
        header = read_header(stream)
        found = info.file_size - stream.tell()
    check_no_objects(where, header)
    has = f"{where} has the shape {header.shape}"
    if is_x:
        check_numbers(where, header.dtype)
        if len(header.shape) < 2 or 0 in header.shape:
            raise DataError(f"{has}; it needs one row per sample, (n, …), none of them empty")
    else:
        check_label_type(where, header.dtype, header.shape)
        if header.dtype.kind == "f":
            raise DataError(f"{where} holds {header.dtype} labels; integers or strings are needed: {key}.astype(int)")
    check_length(where, header, found, remedy)
    with archive.open(info) as stream:
        array = np.load(stream, allow_pickle=False)
    return check_samples(array, where) if is_x else check_labels(array, where)


# Samples in chunks


def samples_per_chunk(shape: Shape) -> int:
    """How many samples of this shape a chunk has."""
    return max(1, min(MAX_SAMPLES, CHUNK_BYTES // (8 * math.prod(shape))))


def split_into_chunks(items: Iterable[Item], shape: Shape) -> Iterator[list[Item]]:
    """Lists of as many items as a chunk has samples of this shape."""
    iterator = iter(items)
    while chunk := list(islice(iterator, samples_per_chunk(shape))):
        yield chunk


def read_npz(path: Path, shape: Shape) -> Iterator[Array]:
    """The samples in an archive: its array x, else x_test, else its only array."""
    with open_npz(path, ("x",)) as (archive, held):
        key = next((key for key in ("x", "x_test") if key in held), held[0] if len(held) == 1 else None)
        if key is None:
            raise DataError(f"{path}: holds {', '.join(held[:12]) or 'nothing'}; the array of samples must be named x")
        info = archive.getinfo(f"{key}.npy")
        with archive.open(info) as stream:
            yield from _read_samples(stream, f"{path}: {key}", shape, info.file_size)


def read_npy(stream: IO[bytes], where: str, shape: Shape) -> Iterator[Array]:
    """The samples in a stream of npy bytes."""
    with report_damage(where, HOW_TO_SAVE):
        yield from _read_samples(stream, where, shape)


def _read_samples(stream: IO[bytes], where: str, shape: Shape, file_size: int | None = None) -> Iterator[Array]:
    header = read_header(stream)
    check_no_objects(where, header)
    check_numbers(where, header.dtype)
    if any(length < 0 for length in header.shape):
        raise DataError(f"{where} has the shape {header.shape}; the file is damaged: {HOW_TO_SAVE}")
    if file_size is not None:
        check_length(where, header, file_size - stream.tell(), HOW_TO_SAVE)
    count, size = _count_samples(where, header.shape, shape), math.prod(shape) * header.dtype.itemsize
    if count == 0:
        raise DataError(f"{where}: holds no samples")
    source = _to_row_major(stream, where, header) if header.column_major else stream
    step = samples_per_chunk(shape)
    for first in range(0, count, step):
        number = min(step, count - first)
        content = source.read(number * size)
        if len(content) < number * size:
            raise DataError(f"{where}: ends after {first + len(content) // size} of its {count} samples; it is cut off")
        yield _convert(np.frombuffer(content, header.dtype).reshape(number, *shape), where, first)
    if stream.read(1):  # reading to the end also makes an archive compare its checksum
        raise DataError(f"{where}: has more bytes after its last sample; the file is damaged: {HOW_TO_SAVE}")


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


def _to_row_major(stream: IO[bytes], where: str, header: Header) -> IO[bytes]:
    """The values of an array in column-major order, in row-major order."""
    size = header.claimed_bytes
    if size > MAX_COLUMN_MAJOR:
        raise DataError(
            f"{where}: is in column-major (Fortran) order, so {size / 1024**3:.1f} GiB would have to be read at once; "
            "save numpy.ascontiguousarray(x)"
        )
    content = stream.read(size)
    if len(content) < size:
        raise DataError(f"{where}: is cut off, {size - len(content)} bytes are missing")
    return BytesIO(np.frombuffer(content, header.dtype).reshape(header.shape, order="F").tobytes())


def _convert(chunk: Array, where: str, first: int) -> Array:
    """The chunk in a type that torch takes, floats with 32 bits. Raises `DataError` for values that are not finite."""
    chunk = to_native(chunk)
    if chunk.dtype.kind == "f":
        with np.errstate(over="ignore"):
            chunk = chunk.astype(np.float32)
    for row in find_nonfinite(chunk):
        raise DataError(f"{where}: row {first + row} has a value that is NaN, infinite or too large")
    return chunk


def read_csv(stream: IO[bytes], where: str, shape: Shape) -> Iterator[Array]:
    """One sample per line; a first line without any number is a header."""
    for rows in split_into_chunks(_read_rows(stream, where, math.prod(shape)), shape):
        yield np.concatenate(rows).reshape(-1, *shape)


def _read_rows(stream: IO[bytes], where: str, length: int) -> Iterator[Array]:
    limit, delimiter, row = max(64 * 1024, NUMBER_BYTES * length), "", 0
    with report_damage(where, "write numbers, one sample per line"):
        for number, line in enumerate(iter(partial(stream.readline, limit + 1), b""), start=1):
            place = f"{where}, line {number}"
            if number == 1:
                _check_is_text(line, where)
            if len(line) > limit:
                raise DataError(f"{place}: is too long for {length} numbers; write one sample per line")
            text = line.decode("utf-8-sig", "replace").strip()
            if not text:
                continue
            is_first = not delimiter
            delimiter = delimiter or next((each for each in DELIMITERS if each in text), ",")
            try:
                cells = next(csv.reader([text], delimiter=delimiter, skipinitialspace=True, strict=True))
            except csv.Error as error:
                raise DataError(f"{place}: not csv ({error}); is a quotation mark left open?") from error
            values = [_parse_number(cell) for cell in cells]
            if is_first and all(value is None for value in values):
                continue
            if None in values:
                hint = "; a header has no numbers" if row == 0 else ""
                wrong = cells[values.index(None)][:40]
                raise DataError(f"{place} (row {row}): {wrong!r} is not a number{hint}")
            if len(values) != length:
                raise DataError(f"{place} (row {row}): has {len(values)} numbers; the model takes {length}")
            yield _convert(np.array([values], dtype=np.float64), place, row)
            row += 1
    if row == 0:
        raise DataError(f"{where}: holds no samples; write one per line")


def _check_is_text(line: bytes, where: str) -> None:
    """Raise `DataError` if a file's first line shows that it is something else than csv."""
    if line.startswith(ZIP_MAGIC):
        raise DataError(f"{where}: is an archive, not csv or npy; pass the name of the .npz file")
    if line.startswith(GZIP_MAGIC):
        raise DataError(f"{where}: is compressed with gzip; unpack it first, with gunzip")


def _parse_number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None
