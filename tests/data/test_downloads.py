"""Downloads from a server on the loopback interface, and the cache they go to."""

import gzip
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from spacenet.data import downloads, sources, storage
from spacenet.data.files import (
    TEST_IMAGES,
    TRAIN_IMAGES,
    FileSet,
)
from spacenet.errors import DataError
from tests.data.support import CONTENTS, PACKED, Handler, files, fill, left_in


@pytest.mark.parametrize("kind", ["good", "plain"])
def test_fetch_downloads_verifies_and_caches(
    tiny: Callable[..., FileSet], tmp_path: Path, server: str, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny(mirrors=(f"{server}/{kind}/",))
    fetched = sources.fetch("tiny")
    folder = tmp_path / "cache" / "data" / "tiny"
    assert fetched == sources.Fetched("tiny", f"{server}/{kind}/", tuple(CONTENTS), folder)
    assert left_in(folder) == sorted(PACKED)
    assert {name: gzip.decompress((folder / f"{name}.gz").read_bytes()) for name in CONTENTS} == CONTENTS
    assert capsys.readouterr().err.splitlines() == [f"fetching {server}/{kind}/{name}" for name in PACKED]
    assert len(Handler.requests) == 4
    again = sources.fetch("tiny")
    assert again.downloaded == ()
    assert again.where == f"{folder} (cache)"
    assert len(Handler.requests) == 4


def test_a_broken_cache_is_repaired(tiny: Callable[..., FileSet], tmp_path: Path, server: str) -> None:
    tiny(mirrors=(f"{server}/good/",))
    folder = fill(tmp_path / "cache" / "data" / "tiny")
    (folder / f"{TEST_IMAGES}.gz").write_bytes(b"\x1f\x8bhalf")
    assert sources.fetch("tiny").downloaded == (TEST_IMAGES,)
    assert Handler.requests == [f"/good/{TEST_IMAGES}.gz"]
    assert gzip.decompress((folder / f"{TEST_IMAGES}.gz").read_bytes()) == CONTENTS[TEST_IMAGES]


@pytest.mark.parametrize("kind", ["wrong", "cut", "endless", "gone"])
def test_a_bad_mirror_falls_through_to_the_next(tiny: Callable[..., FileSet], server: str, kind: str) -> None:
    tiny(mirrors=(f"{server}/{kind}/", f"{server}/good/"))
    found = sources.locate("tiny")
    assert found.contents == CONTENTS
    assert found.origins == [f"{server}/good/"]
    assert len(found.failures) == 2
    assert f"{server}/{kind}/: {TRAIN_IMAGES}.gz: " in found.failures[1]


def test_an_endless_answer_is_cut_off(tmp_path: Path, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "CHUNK", 1024)
    with pytest.raises(storage.Unusable, match="sends more than the file should hold"):
        downloads.download(f"{server}/endless/{TRAIN_IMAGES}.gz", files()[0], tmp_path)
    assert left_in(tmp_path) == []


def test_a_download_that_breaks_off_leaves_no_file(
    tiny: Callable[..., FileSet], tmp_path: Path, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    tiny(mirrors=(f"{server}/cut/",))
    with pytest.raises(DataError, match="the connection broke off|unreadable gzip"):
        sources.fetch("tiny")
    assert left_in(tmp_path) == []
    assert list(scratch.iterdir()) == []


def test_an_interrupted_store_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*args: object) -> None:
        raise KeyboardInterrupt

    piece = storage.Piece(files()[0], CONTENTS[TRAIN_IMAGES])
    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        storage.store(tmp_path, piece)
    assert left_in(tmp_path) == []


def test_a_cache_that_cannot_be_written(
    tiny: Callable[..., FileSet], tmp_path: Path, server: str, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny(mirrors=(f"{server}/good/",))
    (tmp_path / "cache").write_text("a file where the folder should be")
    assert sources.locate("tiny").contents == CONTENTS
    assert "cannot store" in capsys.readouterr().err
    with pytest.raises(DataError, match=f"cannot store.*set {sources.CACHE_VARIABLE}"):
        sources.fetch("tiny")


def test_the_progress_bar_of_a_terminal(
    tiny: Callable[..., FileSet], server: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny(mirrors=(f"{server}/good/",))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    assert len(sources.fetch("tiny").downloaded) == 4
    shown = capsys.readouterr()
    assert TRAIN_IMAGES in shown.err
    assert "fetching" not in shown.err
    assert shown.out == ""
