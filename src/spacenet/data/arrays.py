"""Arrays in npy and npz files, read as untrusted input: headers are checked before any value is read.

Samples are read in chunks (n, …) of the model's input shape, so that memory stays bounded.
"""

import math
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import IO, TypeVar

import numpy as np
from numpy.lib import format as npy

from spacenet.data.checks import check_label_type, check_labels, check_numbers, find_nonfinite, to_native
from spacenet.data.preprocessing import Array
from spacenet.errors import DataError

MAX_HEADER = 10_000
"""Bytes of a header; numpy has the same limit, but checks it after reading up to 4 GiB."""
MAX_BYTES = 64 * 1024**3
"""Of an array in an archive. A zip file of a few MB can claim to hold terabytes."""
MAX_SAMPLES = 1024
"""Samples in a chunk; fewer if these would take more than `CHUNK_BYTES`."""
CHUNK_BYTES = 16 * 1024**2
MAX_COLUMN_MAJOR = 256 * 1024**2
"""Bytes of an array in column-major order: it has to be read at once, because its samples are spread over the file."""
HOW_TO_SAVE = "save it with numpy.save(path, x)"

Shape = tuple[int, ...]
ShapeOf = Callable[[str, "Header"], Shape]
"""The shape that samples are read in, where it follows from an array's name and header."""
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


def choose_arrays(path: Path, held: Sequence[str], *choices: Sequence[str]) -> Sequence[str]:
    """The first of several choices of arrays that an archive holds; an error if it holds none of them."""
    for keys in choices:
        if set(keys) <= set(held):
            return keys
    missing = ", ".join(key for key in choices[0] if key not in held)
    shown = (", ".join(held[:12]) or "nothing") + (", …" if len(held) > 12 else "")
    raise DataError(f"{path}: has no {missing}; it holds {shown}: {how_to_save(choices[0])}")


def check_samples_header(where: str, header: Header, found: int, remedy: str) -> None:
    """Raise `DataError` unless an array can hold samples. `found` are the bytes of its values."""
    check_no_objects(where, header)
    check_numbers(where, header.dtype)
    if len(header.shape) < 2 or 0 in header.shape:
        needed = "it needs one row per sample, (n, …), none of them empty"
        raise DataError(f"{where} has the shape {header.shape}; {needed}")
    check_length(where, header, found, remedy)


def read_labels(stream: IO[bytes], where: str, size: int, remedy: str) -> Array:
    """The labels in a stream of npy bytes, `size` of them."""
    header = read_header(stream)
    check_no_objects(where, header)
    check_label_type(where, header.dtype, header.shape)
    if header.dtype.kind == "f":
        raise DataError(f"{where} holds {header.dtype} labels; integers or strings are needed: y.astype(int)")
    check_length(where, header, size - stream.tell(), remedy)
    content = stream.read(header.claimed_bytes)
    if len(content) < header.claimed_bytes or stream.read(1):  # reading to the end checks the archive's checksum
        raise DataError(f"{where}: does not hold what its header claims; the file is damaged: {remedy}")
    return check_labels(np.frombuffer(content, header.dtype), where)


# Samples in chunks


def samples_per_chunk(shape: Shape) -> int:
    """How many samples of this shape a chunk has."""
    return max(1, min(MAX_SAMPLES, CHUNK_BYTES // (8 * math.prod(shape))))


def split_into_chunks(items: Iterable[Item], shape: Shape) -> Iterator[list[Item]]:
    """Lists of as many items as a chunk has samples of this shape."""
    iterator = iter(items)
    while chunk := list(islice(iterator, samples_per_chunk(shape))):
        yield chunk


def read_npz(path: Path, shape: Shape | ShapeOf) -> Iterator[Array]:
    """The samples in an archive: its array x, else x_test, else its only array."""
    with open_npz(path, ("x",)) as (archive, held):
        key = next((key for key in ("x", "x_test") if key in held), held[0] if len(held) == 1 else None)
        if key is None:
            raise DataError(f"{path}: holds {', '.join(held[:12]) or 'nothing'}; the array of samples must be named x")
        info = archive.getinfo(f"{key}.npy")
        with archive.open(info) as stream:
            yield from read_samples(stream, f"{path}: {key}", shape, info.file_size)


def read_npy(stream: IO[bytes], where: str, shape: Shape | ShapeOf) -> Iterator[Array]:
    """The samples in a stream of npy bytes."""
    with report_damage(where, HOW_TO_SAVE):
        yield from read_samples(stream, where, shape)


def read_samples(
    stream: IO[bytes],
    where: str,
    shape: Shape | ShapeOf,
    file_size: int | None = None,
    convert: Callable[[Array, str, int], Array] | None = None,
) -> Iterator[Array]:
    """The samples in a stream of npy bytes, in chunks of a model's shape; `convert` gets a chunk and its first row.

    By default floats become 32 bits wide, and values that are not finite are an error.
    """
    header = read_header(stream)
    check_no_objects(where, header)
    check_numbers(where, header.dtype)
    if any(length < 0 for length in header.shape):
        raise DataError(f"{where} has the shape {header.shape}; the file is damaged: {HOW_TO_SAVE}")
    if file_size is not None:
        check_length(where, header, file_size - stream.tell(), HOW_TO_SAVE)
    shape = shape(where, header) if callable(shape) else shape
    count, stored = _count_samples(where, header.shape, shape), _stored_shape(where, header.shape, shape)
    if count == 0:
        raise DataError(f"{where}: holds no samples")
    source = _to_row_major(stream, where, header) if header.column_major else stream
    step, size = samples_per_chunk(shape), math.prod(shape) * header.dtype.itemsize
    for first in range(0, count, step):
        number = min(step, count - first)
        content = source.read(number * size)
        if len(content) < number * size:
            raise DataError(f"{where}: ends after {first + len(content) // size} of its {count} samples; it is cut off")
        chunk = (convert or _convert)(np.frombuffer(content, header.dtype).reshape(number, *stored), where, first)
        yield chunk if stored == shape else np.moveaxis(chunk, -1, 1)
    if stream.read(1):  # reading to the end also makes an archive compare its checksum
        raise DataError(f"{where}: has more bytes after its last sample; the file is damaged: {HOW_TO_SAVE}")


def _count_samples(where: str, found: Shape, shape: Shape) -> int:
    """The number of samples in an array; they may be flat, lack axes of length 1, or be one sample alone."""
    squeezed = tuple(length for length in shape if length != 1)
    if found[1:] in (shape, (math.prod(shape),)) or (found and tuple(n for n in found[1:] if n != 1) == squeezed):
        return found[0]
    if found in (shape, squeezed, (math.prod(shape),)):
        return 1
    if _stored_shape(where, found, shape) != shape:
        return found[0]
    raise DataError(f"{where}: samples have the shape {found[1:]}; the model takes {shape}")


def _stored_shape(where: str, found: Shape, shape: Shape) -> Shape:
    """The shape of a sample in the file: the one that is needed, or that of images with their channels last."""
    last = (*shape[1:], shape[0])
    return last if len(shape) == 3 and found[1:] == last else shape


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
