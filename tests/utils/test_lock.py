import errno
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from spacenet.errors import FileError
from spacenet.utils.lock import lock


def start(work: Callable[[], None]) -> int:
    """Do the work in another process; returns its number."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    return child


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_one_process_at_a_time(tmp_path: Path) -> None:
    """Each reads the number, waits, and writes the next one: without the lock, numbers would be lost."""
    path = tmp_path / "counter"
    path.write_text("0")

    def count() -> None:
        for _ in range(10):
            with lock(path):
                number = int(path.read_text())
                time.sleep(0.001)
                path.write_text(str(number + 1))

    children = [start(count) for _ in range(4)]
    for child in children:
        os.waitpid(child, 0)
    assert path.read_text() == "40"
    assert list(tmp_path.iterdir()) == [path]


def test_who_has_it_is_named_and_a_killed_process_has_it_no_longer(tmp_path: Path) -> None:
    path = tmp_path / "x"

    def hold() -> None:
        with lock(path):
            (tmp_path / "held").touch()
            time.sleep(60)

    child = start(hold)
    wait_for((tmp_path / "held").exists)
    with (
        pytest.raises(FileError, match=f"x is being changed by process {child} on"),
        lock(path, wait=False),
    ):
        pass
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with lock(path, wait=False):
        assert (tmp_path / ".x.lock").exists()
    assert not (tmp_path / ".x.lock").exists()


def test_the_same_thread_may_take_it_again_and_another_may_not(tmp_path: Path) -> None:
    refused: list[FileError] = []

    def other() -> None:
        try:
            with lock(tmp_path / "x", wait=False):
                pass
        except FileError as error:
            refused.append(error)

    with lock(tmp_path / "x"), lock(tmp_path / "nowhere" / ".." / "x"):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert len(refused) == 1


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / ".x.lock").symlink_to(victim)
    with pytest.raises(FileError, match="lock"), lock(tmp_path / "x"):
        pass
    assert victim.read_text() == "precious"


def test_a_full_disk_has_room_for_a_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(descriptor: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", write)
    with lock(tmp_path / "x"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_lock_that_cannot_be_removed_is_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was done under it is done, and others need not wait for this process to end."""

    def unlink(path: Path, missing_ok: bool = False) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", unlink)
        with lock(tmp_path / "x"):
            pass
    with lock(tmp_path / "x", wait=False):
        pass
    assert list(tmp_path.iterdir()) == []
