"""Private folders of a training job, which know who owns them: what a dead process left is recognized and removed."""

import json
import os
import shutil
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from spacenet.utils.lock import try_lock

OWNER = "owner.json"
NEW_SECONDS = 60.0
"""A folder without an owner may be one that is just being made."""
BOOT = Path("/proc/sys/kernel/random/boot_id")


class PrivateFolder:
    """A new folder of this process: `path` exists, readable by its owner only, until `remove`."""

    def __init__(self, parent: Path, prefix: str) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        owner = {"pid": os.getpid(), "started": start_of(os.getpid())}
        self._file: TextIO | None = None
        try:
            self._file = (self.path / OWNER).open("x", encoding="utf-8")
            with suppress(OSError):  # process ids mean nothing to another container, a lock does
                try_lock(self._file.fileno())
            self._file.write(json.dumps(owner))
            self._file.flush()
        except OSError:
            self.remove()
            raise

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
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
            owner = json.load(file)
            started = start_of(int(owner["pid"]))
            return started is not None and started == owner["started"]
    except (OSError, ValueError, KeyError, TypeError):
        with suppress(OSError):
            return time.time() - folder.stat().st_mtime < NEW_SECONDS
        return True


def _locked(descriptor: int) -> bool:
    try:
        return not try_lock(descriptor)  # closing the file gives it back
    except OSError:  # a file system without locks
        return False
