"""A lock on a file that is to be changed: one process at a time has it, and loses it when it ends, however it ends."""

import json
import logging
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from spacenet.errors import FileError
from spacenet.utils.files import real_path, report_os_errors

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

log = logging.getLogger("spacenet")
PAUSE = 0.05
"""Seconds between attempts to get a lock that another process holds."""
MAX_OWNER = 4096
"""Bytes of the description of an owner."""
_held: dict[Path, int] = {}
"""The locks of this process, and the thread that has each: taking one again in the same thread is possible."""


@dataclass(frozen=True)
class Owner:
    """Who holds a lock."""

    process: int
    host: str
    since: str
    command: str

    def __str__(self) -> str:
        return f"process {self.process} on {self.host} ({self.command}), since {self.since}"


@contextmanager
def lock(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold the lock of a file, which need not exist yet. While another process has it, wait or raise `FileError`."""
    path = real_path(path)
    if _held.get(path) == threading.get_ident():
        yield
        return
    place = path.with_name(f".{path.name}.lock")
    descriptor = _acquire(path, place, wait)
    _held[path] = threading.get_ident()
    try:
        yield
    finally:
        del _held[path]
        # Removed while it is locked: a process that has opened it meanwhile notices that it is no longer at its place.
        with suppress(OSError):  # one that stays is harmless, and what was done under the lock is done
            place.unlink(missing_ok=True)
        os.close(descriptor)


def _acquire(path: Path, place: Path, wait: bool) -> int:
    told = False
    while True:
        with report_os_errors(place, "used as a lock"):
            descriptor = os.open(place, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
        try:
            if try_lock(descriptor):
                if _is_at(descriptor, place):
                    _write_owner(descriptor)
                    return descriptor
            elif not wait:
                raise FileError(f"{path} is being changed by {_read_owner(descriptor)}; try again when it is done")
            elif not told:
                log.warning("%s is being changed by %s; waiting for it", path, _read_owner(descriptor))
                told = True
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        time.sleep(PAUSE)


def try_lock(descriptor: int) -> bool:
    """Lock an open file for this process, unless another one has locked it."""
    try:
        if sys.platform == "win32":
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


def _is_at(descriptor: int, place: Path) -> bool:
    """Whether the file that was locked is still the one at that place."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(place))
    except FileNotFoundError:
        return False


def _write_owner(descriptor: int) -> None:
    """Say whose lock it is, for the messages of others; a lock on a full disk is one too."""
    command = " ".join([Path(sys.argv[0] or "python").name, *sys.argv[1:3]])
    facts = {"process": os.getpid(), "host": socket.gethostname(), "since": time.strftime("%H:%M:%S")}
    with suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.write(descriptor, json.dumps({**facts, "command": command[:200]}).encode())


def _read_owner(descriptor: int) -> "Owner | str":
    try:
        os.lseek(descriptor, 0, os.SEEK_SET)
        return Owner(**json.loads(os.read(descriptor, MAX_OWNER)))
    except (OSError, ValueError, TypeError):  # it has not said yet who it is
        return "another process"
