"""Replacing files so that each is there as a whole, the old one or the new one.

Every file that spacenet writes comes through `atomic_write`: it is written beside under a name of its own, flushed to
the disk, renamed, and the folder is flushed too. A process that is killed leaves at most a hidden file, which the next
one that writes there removes.
"""

import errno
import logging
import os
import re
import secrets
import shutil
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from spacenet.errors import FileError

log = logging.getLogger("spacenet")
NAME_LENGTH = 100
"""Characters of a file's name that the name of its successor has, which is longer and may not have more than 255."""


@contextmanager
def atomic_write(path: Path, mode: int | None = None) -> Iterator[Path]:
    """A path to write to, which replaces `path` in one move at the end; after an error nothing is left of it.

    The new file has the permissions of the old one, unless `mode` gives others. Links are not followed: one in the
    place of `path` is replaced (`real_path` gives what it leads to).
    Errors of the file system become a `FileError`: nothing was replaced. If only the folder cannot be flushed once the
    file is in its place, that is a warning.
    """
    with report_os_errors(path, "written"):
        remove_leftovers(path.parent, path.name)
        mode = _mode(path) if mode is None else mode
        beside = temporary_path(path.parent, path.name)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
        # Never readable by more people than the old one, not even while it is written.
        os.close(os.open(beside, flags, 0o666 if mode is None else (mode & 0o777) | stat.S_IWUSR))
        try:
            yield beside
            if mode is not None:
                beside.chmod(mode)
            flush(beside)
            beside.replace(path)
        except BaseException:
            with suppress(OSError):
                beside.unlink()
            raise
        try:
            flush(path.parent)
        except OSError as error:  # too late to keep the old file
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # those of file systems that cannot do that at all
                reason = error.strerror or error
                log.warning("%s is written, but would perhaps not outlast a power cut now (%s)", path, reason)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """The name of a folder to make, which gets the name `path` at the end; after an error nothing is left of it."""
    with report_os_errors(path, "written"):
        remove_leftovers(path.parent, path.name)
        beside = temporary_path(path.parent, path.name)
        try:
            yield beside
            for file in (each for each in beside.rglob("*") if each.is_file()):
                flush(file)
            beside.rename(path)
            flush(path.parent)
        finally:
            shutil.rmtree(beside, ignore_errors=True)


def real_path(path: Path) -> Path:
    """The file that a path leads to, by whatever links; the same for every way to name it."""
    return Path(os.path.realpath(path.expanduser()))


@contextmanager
def report_os_errors(path: Path, done: str) -> Iterator[None]:
    """Turn errors of the file system into a `FileError`: `path` cannot be `done`."""
    try:
        yield
    except OSError as error:
        raise FileError(f"{path} cannot be {done} ({error.strerror or error})") from error


def flush(path: Path) -> None:
    """Wait until a file, or the list of a folder's files, is on the disk."""
    if path.is_dir() and os.name == "nt":  # folders cannot be opened there
        return
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _mode(path: Path) -> int | None:
    """The permissions of the file that is to be replaced, if there is one."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return None
    return stat.S_IMODE(found.st_mode) if stat.S_ISREG(found.st_mode) else None


def temporary_path(folder: Path, name: str) -> Path:
    """A new name for a file that this process will remove; if it is killed, `remove_leftovers` does it later."""
    return folder / f"{_prefix(name)}{os.getpid()}.{secrets.token_hex(4)}.tmp"


def _prefix(name: str) -> str:
    host = re.sub(r"[^\w-]", "-", socket.gethostname())[:40]
    return f".{name[:NAME_LENGTH]}.{host}."


def remove_leftovers(folder: Path, name: str) -> None:
    """Remove the temporary files and folders of this name whose processes, on this computer, are no longer there."""
    if os.name == "nt":  # no harmless way to ask whether a process is there
        return
    prefix = _prefix(name)
    with suppress(OSError):
        for found in folder.iterdir():
            process = found.name.removeprefix(prefix).partition(".")[0]
            is_ours = found.name.startswith(prefix) and found.suffix == ".tmp" and process.isdigit()
            if is_ours and not is_alive(int(process)):
                remove = shutil.rmtree if found.is_dir() else Path.unlink
                remove(found)


def is_alive(process: int) -> bool:
    """Whether a process of this computer is there."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # somebody else's
        pass
    return True


def save_text(path: Path, text: str) -> None:
    """Write a text file so that it is there as a whole or not at all."""
    save_bytes(path, text.encode("utf-8"))


def save_bytes(path: Path, content: bytes) -> None:
    """Write a file so that it is there as a whole or not at all."""
    with atomic_write(path) as beside:
        beside.write_bytes(content)


def make_folder(folder: Path) -> None:
    """Make a folder, with those above it, unless it is there."""
    with report_os_errors(folder, "made"):
        folder.mkdir(parents=True, exist_ok=True)
