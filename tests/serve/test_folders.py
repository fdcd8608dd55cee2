"""Folders of dead processes are removed, those of living ones are not."""

import errno
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from spacenet.serve import folders
from spacenet.serve.folders import OWNER, PrivateFolder, remove_leftovers, start_of

PREFIX = ".m[1].job-"


@pytest.fixture
def sleeper() -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def _folder(parent: Path, pid: int, started: str | None) -> Path:
    folder = parent / f"{PREFIX}x"
    folder.mkdir()
    (folder / OWNER).write_text(json.dumps({"pid": pid, "started": started}))
    return folder


def test_a_folder_lives_as_long_as_its_owner(tmp_path: Path) -> None:
    mine = PrivateFolder.make(tmp_path, PREFIX)
    assert mine.path.stat().st_mode & 0o077 == 0
    assert json.loads((mine.path / OWNER).read_text())["pid"] == os.getpid()
    remove_leftovers(tmp_path, PREFIX)
    assert mine.path.exists()
    mine.remove()
    assert list(tmp_path.iterdir()) == []


def test_the_folder_of_a_living_process_stays_without_locks(
    tmp_path: Path, sleeper: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "_locked", lambda file: False)
    folder = _folder(tmp_path, sleeper.pid, start_of(sleeper.pid))
    remove_leftovers(tmp_path, PREFIX)
    assert folder.exists()
    sleeper.kill()
    sleeper.wait()
    remove_leftovers(tmp_path, PREFIX)
    assert not folder.exists()


def test_a_process_id_that_was_given_again_is_noticed(tmp_path: Path, sleeper: "subprocess.Popen[bytes]") -> None:
    folder = _folder(tmp_path, sleeper.pid, f"earlier than {start_of(sleeper.pid)}")
    remove_leftovers(tmp_path, PREFIX)
    assert not folder.exists()


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"pid": "x", "started": 1}', '{"pid": null}', "\0"])
def test_a_folder_without_a_readable_owner_goes_when_it_is_old(tmp_path: Path, content: str) -> None:
    folder = _folder(tmp_path, 1, None)
    (folder / OWNER).write_text(content)
    remove_leftovers(tmp_path, PREFIX)
    assert folder.exists(), "it may just have been made"
    os.utime(folder, (0, 0))
    remove_leftovers(tmp_path, PREFIX)
    assert not folder.exists()


def test_other_things_and_links_stay(tmp_path: Path) -> None:
    target = tmp_path / "data"
    target.mkdir()
    (tmp_path / f"{PREFIX}link").symlink_to(target)
    (tmp_path / ".m1.job-x").mkdir()
    os.utime(target, (0, 0))
    remove_leftovers(tmp_path, PREFIX)
    assert len(list(tmp_path.iterdir())) == 3


def test_a_folder_that_cannot_say_whose_it_is_is_not_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: Path, *args: object, **options: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(Path, "open", refused)
    with pytest.raises(OSError, match="No space left"):
        PrivateFolder.make(tmp_path, PREFIX)
    assert list(tmp_path.iterdir()) == []
