"""Fetching data files from public mirrors, with a progress bar where somebody is watching."""

import logging
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from spacenet.data.files import DataFile
from spacenet.data.storage import Piece, Unusable, largest, verified

if TYPE_CHECKING:
    from rich.progress import Progress

# Seconds to connect, and seconds without a byte before a mirror is given up.
TIMEOUT = (10.0, 30.0)
CHUNK = 64 * 1024


def note(text: str) -> None:
    """One line for the person at the keyboard, apart from the results on stdout."""
    print(text, file=sys.stderr, flush=True)


class _Bar:
    """What pooch expects of a progress bar (the interface of tqdm), shown by rich."""

    def __init__(self, progress: "Progress", label: str) -> None:
        self._progress = progress
        self._task = progress.add_task(label, total=None)
        self._total = 0

    @property
    def total(self) -> int:
        return self._total

    @total.setter
    def total(self, total: int) -> None:
        self._total = total
        # A server that does not say how much will come gives 0: rich then shows a bar without an end.
        self._progress.update(self._task, total=total or None)

    def update(self, count: int) -> None:
        self._progress.advance(self._task, count)

    def reset(self) -> None:
        self._progress.update(self._task, completed=0)

    def close(self) -> None:
        self._progress.stop_task(self._task)


@contextmanager
def _watched(label: str, url: str) -> Iterator[_Bar | bool]:
    """A progress bar on a terminal; elsewhere one line, and False in place of the bar."""
    if not sys.stderr.isatty():
        note(f"fetching {url}")
        yield False
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield _Bar(progress, label)


class _Bounded:
    """A file that refuses to grow beyond a limit: a mirror may send anything, for as long as it likes."""

    def __init__(self, stream: BinaryIO, limit: int) -> None:
        self._stream = stream
        self._left = limit

    def write(self, chunk: bytes) -> int:
        self._left -= len(chunk)
        if self._left < 0:
            raise Unusable("unreadable: sends more than the file should hold", broken=True)
        return self._stream.write(chunk)

    def flush(self) -> None:
        self._stream.flush()


def _reason(error: Exception) -> str:
    """A download's failure in a few words, in place of the stack of addresses that the libraries report."""
    from requests import exceptions
    from urllib3.exceptions import ReadTimeoutError

    if isinstance(error, exceptions.HTTPError) and error.response is not None:
        return f"the server answers {error.response.status_code} {error.response.reason}"
    if isinstance(error, exceptions.ConnectTimeout):
        return f"no connection within {TIMEOUT[0]:.0f} s"
    cause = error.args[0] if error.args else None
    # requests reports a silence in the middle of a file as a failure to connect.
    if isinstance(error, exceptions.Timeout) or isinstance(cause, ReadTimeoutError):
        return f"no answer for {TIMEOUT[1]:.0f} s"
    if isinstance(error, exceptions.ChunkedEncodingError):
        return "the connection broke off"
    if isinstance(error, exceptions.ConnectionError):
        return f"cannot connect ({type(getattr(cause, 'reason', error)).__name__})"
    return f"{type(error).__name__}: {error}"


def retrieve(url: str, name: str, limit: int, folder: Path) -> Path:
    """Downloads what is at the address, of `limit` bytes at most, into `folder` and nowhere else. Not verified."""
    import pooch
    from requests.exceptions import RequestException

    pooch.get_logger().setLevel(logging.CRITICAL)
    with _watched(name, url) as bar:
        fetch = pooch.HTTPDownloader(progressbar=bar, chunk_size=CHUNK, timeout=TIMEOUT)

        def bounded(address: str, output: str, caller: Any) -> None:
            with Path(output).open("wb") as stream:
                fetch(address, _Bounded(stream, limit), caller)

        try:
            return Path(pooch.retrieve(url, known_hash=None, fname=name, path=folder, downloader=bounded))
        except (RequestException, OSError, ValueError) as error:
            raise Unusable(_reason(error)) from error


def download(url: str, file: DataFile, folder: Path) -> bytes:
    """The verified content of the file at the address; whatever fails, nothing of it stays outside `folder`."""
    return verified(retrieve(url, file.name, largest(file), folder).read_bytes(), file)


def read_mirror(base: str, files: Iterable[DataFile]) -> Iterator[Piece | Unusable]:
    """Fetches the files one by one. The first failure ends it: a mirror that fails once is not waited for again."""
    with tempfile.TemporaryDirectory(prefix="spacenet-") as folder:
        for file in files:
            try:
                yield Piece(file, download(f"{base}{file.name}.gz", file, Path(folder)))
            except Unusable as reason:
                yield Unusable(f"{file.name}.gz: {reason}", broken=reason.broken)
                return
