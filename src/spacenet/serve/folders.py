"""Private folders of jobs, which know who owns them: what a dead process left is recognized, and used or removed."""

import json
import os
import shutil
import stat
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from spacenet.utils.lock import try_lock

OWNER = "owner.json"
LENGTH = 200
"""Bytes of the file that says who the owner is; what it needs is less."""
NEW_SECONDS = 60.0
"""A folder without an owner may be one that is just being made."""
BOOT = Path("/proc/sys/kernel/random/boot_id")


class PrivateFolder:
    """A folder of this process, readable by its owner only: `path` exists until `remove`."""

    def __init__(self, path: Path, file: TextIO | None = None) -> None:
        self.path, self._file = path, file

    @classmethod
    def make(cls, parent: Path, prefix: str) -> "PrivateFolder":
        """A new folder."""
        folder = cls(Path(tempfile.mkdtemp(prefix=prefix, dir=parent)))
        try:
            folder._file = (folder.path / OWNER).open("x", encoding="utf-8")
            with suppress(OSError):  # process ids mean nothing to another container, a lock does
                try_lock(folder._file.fileno())
            folder._write_owner(os.getpid(), start_of(os.getpid()))
        except OSError:
            folder.remove()
            raise
        return folder

    @classmethod
    def claim(cls, path: Path) -> "PrivateFolder | None":
        """Take over a folder whose owner is no more. None if there is one, or if others could have written into it."""
        folder = cls(path)
        try:
            if not _is_private(path):
                return None
            folder._file = file = (path / OWNER).open("r+", encoding="utf-8")
            if not _locked(file.fileno()) and not _is_alive(file):
                folder._write_owner(os.getpid(), start_of(os.getpid()))
                return folder
        except (OSError, ValueError, KeyError, TypeError):
            pass
        folder._close()
        return None

    def release(self) -> None:
        """Leave it for another process to claim."""
        with suppress(OSError):
            self._write_owner(0, "")
        self._close()

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        self._close()

    def _write_owner(self, pid: int, started: str | None) -> None:
        assert self._file is not None
        self._file.seek(0)
        self._file.write(json.dumps({"pid": pid, "started": started}).ljust(LENGTH))  # in one step over what was there
        self._file.flush()

    def _close(self) -> None:
        if self._file is not None:
            with suppress(OSError):  # a full disk: what could not be written is of no use any more
                self._file.close()


def remove_leftovers(parent: Path, prefix: str) -> None:
    """Remove the folders of processes that are no more."""
    for folder in parent.iterdir():
        if folder.name.startswith(prefix) and not folder.is_symlink() and not _in_use(folder):
            shutil.rmtree(folder, ignore_errors=True)


def start_of(pid: int) -> str | None:
    """Tells a process from a later one with the same id; None if there is no such process."""
    if BOOT.exists():
        try:
            # The command comes second, in parentheses, and may hold anything; the start is the 22nd field.
            fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            return f"{BOOT.read_text(encoding='utf-8').strip()} {fields[19]}"
        except (OSError, IndexError):
            return None
    if os.name == "nt":  # no lasting name there: every process counts as dead, but its open files cannot be removed
        return None
    done = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return done.stdout.strip() or None


def _in_use(folder: Path) -> bool:
    try:
        with (folder / OWNER).open("r+", encoding="utf-8") as file:
            if _locked(file.fileno()):
                return True
            return _is_alive(file)
    except (OSError, ValueError, KeyError, TypeError):
        with suppress(OSError):
            return time.time() - folder.stat().st_mtime < NEW_SECONDS
        return True


def _is_alive(file: TextIO) -> bool:
    """Whether the process that an owner's file names is there."""
    owner = json.load(file)
    started = start_of(int(owner["pid"]))
    return started is not None and started == owner["started"]


def _is_private(folder: Path) -> bool:
    """Whether it is a folder of this user that not everybody can write into. A volume may have opened it to a group."""
    facts = folder.lstat()
    mine = not hasattr(os, "geteuid") or (facts.st_uid == os.geteuid() and not facts.st_mode & stat.S_IWOTH)
    return stat.S_ISDIR(facts.st_mode) and mine


def _locked(descriptor: int) -> bool:
    try:
        return not try_lock(descriptor)  # closing the file gives it back
    except OSError:  # a file system without locks
        return False
