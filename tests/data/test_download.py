"""Downloads from a server on the loopback interface, and the cache they go to."""

import gzip
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from spacenet.data import download, fetch
from spacenet.data.files import TEST_IMAGES, TRAIN_IMAGES, FileProblem, FileSet, VerifiedFile, store
from spacenet.errors import DataError
from tests.data.support import CONTENTS, PACKED, Handler, files, fill, left_in


@pytest.mark.parametrize("kind", ["good", "plain"])
def test_fetch_downloads_verifies_and_caches(
    tiny: Callable[..., FileSet], tmp_path: Path, server: str, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "spacenet")
    file_set = tiny(mirrors=(f"{server}/{kind}/",))
    fetched = fetch.fetch_files(file_set)
    folder = tmp_path / "cache" / "data" / "tiny"
    assert fetched == fetch.FetchResult("tiny", f"{server}/{kind}/", tuple(CONTENTS), folder)
    assert left_in(folder) == sorted(PACKED)
    assert {name: gzip.decompress((folder / f"{name}.gz").read_bytes()) for name in CONTENTS} == CONTENTS
    assert caplog.messages == [f"downloading {server}/{kind}/{name}" for name in PACKED]
    assert len(Handler.requests) == 4
    again = fetch.fetch_files(file_set)
    assert again.downloaded == ()
    assert again.where == f"{folder} (cache)"
    assert len(Handler.requests) == 4


def test_a_broken_cache_is_repaired(tiny: Callable[..., FileSet], tmp_path: Path, server: str) -> None:
    file_set = tiny(mirrors=(f"{server}/good/",))
    folder = fill(tmp_path / "cache" / "data" / "tiny")
    (folder / f"{TEST_IMAGES}.gz").write_bytes(b"\x1f\x8bhalf")
    assert fetch.fetch_files(file_set).downloaded == (TEST_IMAGES,)
    assert Handler.requests == [f"/good/{TEST_IMAGES}.gz"]
    assert gzip.decompress((folder / f"{TEST_IMAGES}.gz").read_bytes()) == CONTENTS[TEST_IMAGES]


@pytest.mark.parametrize("kind", ["wrong", "cut", "endless", "gone"])
def test_a_bad_mirror_falls_through_to_the_next(tiny: Callable[..., FileSet], server: str, kind: str) -> None:
    file_set = tiny(mirrors=(f"{server}/{kind}/", f"{server}/good/"))
    found = fetch.load_files(file_set)
    assert found.contents == CONTENTS
    assert found.sources == [f"{server}/good/"]
    assert len(found.problems) == 2
    assert f"{server}/{kind}/: {TRAIN_IMAGES}.gz: " in found.problems[1]


def test_an_endless_answer_is_cut_off(tmp_path: Path, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "CHUNK", 1024)
    with pytest.raises(FileProblem, match="sends more than the file should have"):
        download.download(f"{server}/endless/{TRAIN_IMAGES}.gz", TRAIN_IMAGES, files()[0].max_bytes, tmp_path)
    assert left_in(tmp_path) == []


def test_a_download_that_breaks_off_leaves_no_file(
    tiny: Callable[..., FileSet], tmp_path: Path, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    file_set = tiny(mirrors=(f"{server}/cut/",))
    with pytest.raises(DataError, match="the connection broke off|unreadable gzip"):
        fetch.fetch_files(file_set)
    assert left_in(tmp_path) == []
    assert list(scratch.iterdir()) == []


def test_an_interrupted_store_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*args: object) -> None:
        raise KeyboardInterrupt

    piece = VerifiedFile(files()[0], CONTENTS[TRAIN_IMAGES])
    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        store(tmp_path, piece)
    assert left_in(tmp_path) == []


def test_a_cache_that_cannot_be_written(
    tiny: Callable[..., FileSet], tmp_path: Path, server: str, caplog: pytest.LogCaptureFixture
) -> None:
    file_set = tiny(mirrors=(f"{server}/good/",))
    (tmp_path / "cache").write_text("a file where the folder should be")
    assert fetch.load_files(file_set).contents == CONTENTS
    assert "tiny cannot be made" in caplog.text
    assert "downloaded again next time" in caplog.text
    with pytest.raises(DataError, match=f"cannot be made.*set {fetch.CACHE_VARIABLE}"):
        fetch.fetch_files(file_set)


def test_the_progress_bar_of_a_terminal(
    tiny: Callable[..., FileSet],
    server: str,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caplog.set_level(logging.INFO, "spacenet")
    file_set = tiny(mirrors=(f"{server}/good/",))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    assert len(fetch.fetch_files(file_set).downloaded) == 4
    shown = capsys.readouterr()
    assert TRAIN_IMAGES in shown.err
    assert "downloading" not in caplog.text
    assert shown.out == ""
