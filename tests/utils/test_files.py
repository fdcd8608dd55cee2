import errno
import logging
import os
import stat
from pathlib import Path

import pytest

from spacenet.errors import FileError
from spacenet.utils.files import (
    atomic_folder,
    atomic_write,
    is_alive,
    make_folder,
    save_bytes,
    save_text,
    temporary_path,
)


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    save_bytes(tmp_path / "x", b"old")

    def write_half(error: BaseException) -> None:
        with atomic_write(tmp_path / "x") as beside:
            beside.write_bytes(b"ne")
            raise error

    with pytest.raises(FileError, match="x cannot be written .no space left"):
        write_half(OSError("no space left on device"))
    with pytest.raises(KeyboardInterrupt):
        write_half(KeyboardInterrupt())
    assert (tmp_path / "x").read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [tmp_path / "x"]


@pytest.mark.skipif(os.name == "nt", reason="no such permissions there")
@pytest.mark.parametrize("mode", [0o600, 0o644, 0o400, 0o664])
def test_permissions_stay(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"old")
    path.chmod(mode)
    with atomic_write(path) as beside:
        assert stat.S_IMODE(beside.stat().st_mode) & 0o077 <= mode & 0o077
        beside.write_bytes(b"new")
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert path.read_bytes() == b"new"


def test_a_link_that_was_planted_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    (tmp_path / "x.new").symlink_to(victim)
    (tmp_path / "x").symlink_to(victim)
    save_bytes(tmp_path / "x", b"new")
    assert victim.read_bytes() == b"precious"
    assert not (tmp_path / "x").is_symlink()


def test_what_a_killed_process_left_is_removed_and_what_a_living_one_writes_is_not(tmp_path: Path) -> None:
    child = os.fork()
    if child == 0:
        with atomic_write(tmp_path / "x") as beside:
            beside.write_bytes(b"half")
            os._exit(0)
    os.waitpid(child, 0)
    (left,) = tmp_path.iterdir()
    assert str(child) in left.name
    with atomic_write(tmp_path / "x") as first:
        assert not left.exists()
        save_text(tmp_path / "x", "second")
        assert first.exists()
        first.write_text("first")
    assert (tmp_path / "x").read_text() == "first"
    assert list(tmp_path.iterdir()) == [tmp_path / "x"]


def test_the_file_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []
    flush, replace = os.fsync, Path.replace

    def noted_flush(descriptor: int) -> None:
        events.append("flush")
        flush(descriptor)

    def noted_replace(self: Path, target: Path) -> Path:
        events.append("rename")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", noted_flush)
    monkeypatch.setattr(Path, "replace", noted_replace)
    save_text(tmp_path / "x", "text")
    assert events == ["flush", "rename", "flush"]


def test_names_of_any_length_and_folders_that_cannot_be(tmp_path: Path) -> None:
    save_text(tmp_path / ("ä" * 120), "text")
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="file cannot be made .File exists"):
        make_folder(tmp_path / "file")
    with pytest.raises(FileError, match="cannot be written .Not a directory"):
        save_text(tmp_path / "file" / "x", "text")


def test_which_processes_are_there() -> None:
    assert is_alive(os.getpid())
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    assert not is_alive(child)


@pytest.mark.parametrize(("code", "warnings"), [(errno.EIO, 1), (errno.EINVAL, 0)])
def test_a_folder_that_cannot_be_flushed_does_not_undo_what_is_written(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    code: int,
    warnings: int,
) -> None:
    """The file is in its place by then: an error would say that the old one is still there."""
    plain = os.fsync

    def fsync(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(code, os.strerror(code))
        plain(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(logging.getLogger("spacenet"), "propagate", True)
    save_bytes(tmp_path / "x", b"new")
    assert (tmp_path / "x").read_bytes() == b"new"
    assert {record.levelname for record in caplog.records} == ({"WARNING"} if warnings else set())


def test_a_folder_is_there_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "folder"
    with pytest.raises(KeyError), atomic_folder(path) as beside:  # noqa: PT012
        beside.mkdir()
        (beside / "file").write_text("half")
        raise KeyError
    assert not list(tmp_path.iterdir())
    ended = tmp_path / temporary_path(tmp_path, "folder").name.replace(f".{os.getpid()}.", ".4000000.")
    (ended / "inner").mkdir(parents=True)  # of a process that was killed
    with atomic_folder(path) as beside:
        (beside / "inner").mkdir(parents=True)
        (beside / "inner" / "file").write_text("whole")
        assert not path.exists()
    assert [each.relative_to(path).as_posix() for each in path.rglob("*")] == ["inner", "inner/file"]
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(FileError, match="cannot be written"), atomic_folder(path) as beside:
        beside.mkdir()
    assert (path / "inner" / "file").read_text() == "whole"
