"""Data files on disk: reading them as if they were hostile, checking them, and storing them whole or not at all."""

import gzip
import hashlib
import io
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from spacenet.data.files import DataFile

GZIP_MAGIC = b"\x1f\x8b"
# What gzip may add to content that does not compress; a bigger file cannot be the right one and is not read.
GZIP_OVERHEAD = 64 * 1024


class Unusable(Exception):
    """Why a source cannot give a file. `broken`: something was there, but it was not the file it should be."""

    def __init__(self, reason: str, broken: bool = False) -> None:
        super().__init__(reason)
        self.broken = broken


@dataclass(frozen=True)
class Piece:
    """The verified content of one file."""

    file: DataFile
    content: bytes


@dataclass(frozen=True)
class DataSource:
    """A place that may have files. `read` gives what it has of those asked for, and its reasons for the others."""

    title: str
    read: Callable[[Iterable[DataFile]], Iterator[Piece | Unusable]]
    remote: bool = False


def largest(file: DataFile) -> int:
    """The most bytes in which this file can come, compressed or not."""
    return file.size + GZIP_OVERHEAD


def verified(raw: bytes, file: DataFile) -> bytes:
    """The content of the file, which comes gzipped or plain. Raises Unusable unless it is exactly the right one."""
    content = raw
    # By the first bytes and not by the name: some servers and browsers decompress a .gz on the way.
    if raw[:2] == GZIP_MAGIC:
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(raw)) as stream:
                content = stream.read(file.size + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise Unusable(f"unreadable gzip ({error})", broken=True) from error
    if len(content) > file.size:
        raise Unusable(f"unreadable: holds more than the {file.size} bytes it should", broken=True)
    if len(content) < file.size:
        raise Unusable(f"unreadable: holds {len(content)} bytes instead of {file.size}", broken=True)
    if hashlib.sha256(content).hexdigest() != file.sha256:
        raise Unusable("checksum does not match", broken=True)
    return content


def read_file(path: Path, file: DataFile) -> bytes:
    """The verified content of a file on disk."""
    try:
        if not path.is_file():
            raise Unusable("not a regular file", broken=True)
        with path.open("rb") as stream:
            raw = stream.read(largest(file) + 1)
    except OSError as error:
        raise Unusable(f"unreadable ({error.strerror or error})", broken=True) from error
    if len(raw) > largest(file):
        raise Unusable(f"unreadable: larger than the {file.size} bytes it should hold", broken=True)
    return verified(raw, file)


def _present(path: Path) -> bool:
    # os.path.lexists never raises, where Path.exists does for a folder that may not be entered.
    return os.path.lexists(path)


def read_folders(folders: Iterable[Path], files: Iterable[DataFile]) -> Iterator[Piece | Unusable]:
    """Looks for each file, gzipped or plain, in each folder; what is there but broken is reported and passed over."""
    places, wanted = list(folders), list(files)
    absent = []
    for file in wanted:
        paths = [folder / name for folder in places for name in (f"{file.name}.gz", file.name)]
        present = [path for path in paths if _present(path)]
        if not present:
            absent.append(file.name)
        for path in present:
            try:
                yield Piece(file, read_file(path, file))
                break
            except Unusable as reason:
                yield Unusable(f"{path}: {reason}", broken=reason.broken)
    if absent:
        looked = " or ".join(str(folder) for folder in places)
        names = "none of the files" if absent == [file.name for file in wanted] else f"no {', '.join(absent)}"
        yield Unusable(f"{names} in {looked}" if any(map(_present, places)) else f"no folder {looked}")


def store(folder: Path, piece: Piece) -> Path:
    """Writes the file gzipped: beside its place first and then moved there, so that no half of it is ever seen."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{piece.file.name}.gz"
    beside = folder / f".{piece.file.name}.{os.getpid()}.part"
    packed = gzip.compress(piece.content, compresslevel=6, mtime=0)
    try:
        beside.write_bytes(packed)
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)
    return target
