"""Fixtures: a fake data set in the table, a server on the loopback interface, a network that must not be asked."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from spacenet.data import sources
from spacenet.data.files import (
    FILE_SETS,
    FileSet,
)
from tests.data.support import SHAPE, Handler, files


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., FileSet]:
    """Puts a data set `tiny` into the table, with the sources that the test wants, and an empty cache."""
    monkeypatch.delenv(sources.DATA_VARIABLE, raising=False)
    monkeypatch.setenv(sources.CACHE_VARIABLE, str(tmp_path / "cache"))

    def make(**changes: object) -> FileSet:
        entry = FileSet("tiny", 10, 3, 2, SHAPE, 0.1, 0.3, files(), folders=("tiny", "TINY/raw"))
        entry = replace(entry, **changes)  # type: ignore[arg-type]
        monkeypatch.setitem(FILE_SETS, "tiny", entry)
        return entry

    return make


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(sources, "read_mirror", refuse)
    monkeypatch.setattr(sources, "read_archive", refuse)
    monkeypatch.setattr(sources, "read_wheel", refuse)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    Handler.requests.clear()
    Handler.archives.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{http.server_address[1]}"
        http.shutdown()
        thread.join()
