"""Files out of a tar.gz from the network, read as if it were hostile: in one pass, and never unpacked to disk."""

import tarfile
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal, Self

from spacenet.data.downloads import retrieve
from spacenet.data.files import Archive, DataFile, FileSet
from spacenet.data.storage import GZIP_MAGIC, Piece, Unusable, verified

# For all that is in an archive beside the files: headers, a readme, the names of the classes.
OVERHEAD = 1024**2
# The archives have about ten. tarfile remembers each one, so a list without an end would fill the memory.
MAX_MEMBERS = 1000
EXTENSIONS = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
    tarfile.GNUTYPE_SPARSE,
)
UNKNOWN = b"?"


class _Member(tarfile.TarInfo):
    """A member by its plain header alone.

    tarfile reads the headers that extend others (long names, attributes, maps of holes) into memory, at whatever size
    they claim, and lets them change what follows. No file wanted here needs them: they are passed over like any member
    of a type that tarfile does not know.
    """

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        member = super().frombuf(buf, encoding, errors)
        if member.type in EXTENSIONS:
            member.type = UNKNOWN
        return member


def _bounded(members: Iterable[tarfile.TarInfo], limit: int) -> Iterator[tarfile.TarInfo]:
    """The members, as long as they claim no more than `limit` bytes together, so that skipping them takes no time."""
    claimed = 0
    for number, member in enumerate(members):
        claimed += member.size
        if number >= MAX_MEMBERS or member.size < 0 or claimed > limit:
            raise Unusable("unreadable: holds more than it should", broken=True)
        yield member


def _read_member(archive: tarfile.TarFile, member: tarfile.TarInfo, file: DataFile) -> bytes:
    stream = archive.extractfile(member) if member.type in (tarfile.REGTYPE, tarfile.AREGTYPE) else None
    if stream is None:
        raise Unusable("not a regular file", broken=True)
    if member.size != file.size:
        raise Unusable(f"unreadable: holds {member.size} bytes instead of {file.size}", broken=True)
    return verified(stream.read(file.size), file)


def read_tar(path: Path, folder: str, files: Iterable[DataFile], limit: int) -> Iterator[Piece | Unusable]:
    """The verified files that lie in this folder of the archive. The first member of a file's name is the one."""
    wanted = {f"{folder}/{file.name}": file for file in files}
    try:
        with path.open("rb") as stream:
            # By the first bytes and not by the name: some servers decompress on the way.
            mode: Literal["r|gz", "r|"] = "r|gz" if stream.read(2) == GZIP_MAGIC else "r|"
        with tarfile.open(path, mode, tarinfo=_Member) as archive:
            for member in _bounded(archive, limit):
                file = wanted.pop(member.name, None)
                if file is None:
                    continue
                try:
                    yield Piece(file, _read_member(archive, member, file))
                except Unusable as reason:
                    yield Unusable(f"{member.name}: {reason}", broken=True)
                if not wanted:
                    break
    except Unusable as reason:
        yield reason
        return
    # TypeError: tarfile's way to say that the gzip header breaks off.
    except (tarfile.TarError, zlib.error, EOFError, OSError, ValueError, TypeError) as error:
        yield Unusable(f"unreadable archive ({error})", broken=True)
        return
    if wanted:
        yield Unusable(f"no {', '.join(wanted)} found in it", broken=True)


def read_archive(entry: FileSet, archive: Archive, files: Iterable[DataFile]) -> Iterator[Piece | Unusable]:
    """Fetches the archive and takes the files out of it."""
    # Whatever is asked for, the archive has all the files of the data set.
    limit = sum(file.size for file in entry.files) + OVERHEAD
    with tempfile.TemporaryDirectory(prefix="spacenet-") as folder:
        try:
            path = retrieve(archive.url, archive.url.rpartition("/")[2], limit, Path(folder))
        except Unusable as reason:
            yield reason
            return
        yield from read_tar(path, archive.folder, files, limit)
