"""Faults of the file system: the n-th open, write, flush, rename or removal below a folder fails, or ends the process.

`inject` replaces the functions through which Python reaches files. What fails is counted, so that a command can be
run once to see how many operations it has, and then once for each of them. Files that are opened for writing get a raw
layer of ours below Python's buffers: a write is counted when it reaches the system, also where closing a file causes
it. A write that fails has written half of its data.
"""

import builtins
import errno
import importlib
import io
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Kind = Literal["no space", "permission", "gone", "read-only", "killed"]
ERRORS: dict[Kind, int] = {
    "no space": errno.ENOSPC,
    "permission": errno.EACCES,
    "gone": errno.ENOENT,
    "read-only": errno.EROFS,
}
KILLED = 137
"""The exit code of a process that was killed."""
PATH_FUNCTIONS = ("open", "replace", "rename", "link", "symlink", "unlink", "remove", "rmdir", "mkdir", "chmod")
"""Functions of `os` whose first argument is a path."""
DESCRIPTOR_FUNCTIONS = ("write", "fsync", "ftruncate", "fchmod", "sendfile")
"""Functions of `os` whose first argument is an open file."""
NATIVE = (("spacenet.utils.tensors", "safe_open"), ("onnxruntime", "InferenceSession"))
"""Names of functions that read a file, their first argument, without Python."""
READ, REMOVALS = "read", ("unlink", "remove", "rmdir")
HARMLESS: dict[Kind, tuple[str, ...]] = {"no space": (READ, *REMOVALS), "read-only": (READ,)}
"""What works on a full disk, and on one that can only be read."""
AUDITED = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod")
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def can_fail(operation: str, kind: Kind) -> bool:
    """Whether an operation, as `Faults` has listed it, can fail in this way."""
    return operation.split()[0] not in HARMLESS.get(kind, ())


@dataclass
class Faults:
    """Counts operations below `root`, and makes the `at`-th one fail (none, if it is 0)."""

    root: Path
    at: int = 0
    kind: Kind = "no space"
    persistent: bool = False
    """Whether all operations after it fail too, as on a full disk."""
    operations: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    """Names of files that could not be removed, and of folders that could not be opened to empty them."""
    bypassed: list[str] = field(default_factory=list)
    """Operations below `root` that Python has reported and that were not counted."""
    descriptors: dict[int, str] = field(default_factory=dict)
    paused: bool = False
    _own: threading.local = field(default_factory=threading.local)

    def note(self, operation: str, path: str, begin: Callable[[], object] = lambda: None, to: str = "") -> None:
        """Called before each operation; `begin` does a part of it, where that is possible."""
        if self.paused or not self._concerns(path):
            return
        name = Path(path).name
        self.operations.append(f"{operation} {name}{' to ' if to else ''}{Path(to).name}")
        number = len(self.operations)
        if not self.at or not (number == self.at or (self.persistent and number > self.at)):
            return
        if not can_fail(operation, self.kind):
            return
        begin()
        if self.kind == "killed":
            os._exit(KILLED)
        if operation in REMOVALS or (operation == READ and Path(path).is_dir()):
            self.refused.append(name)
        raise OSError(ERRORS[self.kind], os.strerror(ERRORS[self.kind]), path)

    def do(self, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Call a plain function, which is counted already."""
        before, self._own.inside = getattr(self._own, "inside", False), True
        try:
            return function(*args, **options)
        finally:
            self._own.inside = before

    def place(self, path: Any, folder: int | None = None) -> str:
        """The whole path of a path, or of an open file; `folder` is the open folder that the path is relative to."""
        if isinstance(path, int):
            return self.descriptors.get(path, "")
        start = "" if folder is None else self.descriptors.get(folder, "")
        return str(Path(start, os.fsdecode(path)).absolute())

    def audit(self, event: str, args: tuple[Any, ...]) -> None:
        """Called for whatever Python reports about itself."""
        known = self.paused or getattr(self._own, "inside", False)
        if event in AUDITED and not known and args and isinstance(args[0], str | bytes | os.PathLike):
            path = os.fsdecode(args[0])
            if self._concerns(path):
                self.bypassed.append(f"{event} {Path(path).name}")

    def _concerns(self, path: str) -> bool:
        return path == str(self.root) or path.startswith(f"{self.root}{os.sep}")


_active: list[Faults] = []


@contextmanager
def paused() -> Iterator[None]:
    """Neither count nor fail within the block."""
    before = [faults.paused for faults in _active]
    for faults in _active:
        faults.paused = True
    try:
        yield
    finally:
        for faults, value in zip(_active, before, strict=True):
            faults.paused = value


class _Raw(io.FileIO):
    """An open file whose writes are counted."""

    def __init__(self, faults: Faults, file: Any, mode: str, closefd: bool, opener: Any) -> None:
        faults.do(super().__init__, file, mode, closefd, opener)
        self._faults, self._path = faults, faults.place(file)
        faults.descriptors[self.fileno()] = self._path

    def write(self, data: Any) -> int:
        half = bytes(data)[: len(data) // 2]
        self._faults.note("write", self._path, lambda: super(_Raw, self).write(half))
        return super().write(data)

    def close(self) -> None:
        if not self.closed and self.closefd:
            self._faults.descriptors.pop(self.fileno(), None)
        super().close()


def _open_for(faults: Faults, plain_open: Callable[..., Any]) -> Callable[..., Any]:
    """What takes the place of `open`."""

    def open_file(
        file: Any,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
        closefd: bool = True,
        opener: Any = None,
    ) -> Any:
        writes = any(letter in mode for letter in "wax+")
        if not isinstance(file, int) and opener is None:
            faults.note("open" if writes else READ, faults.place(file))
        text = encoding, errors, newline
        if not writes or (isinstance(file, int) and file not in faults.descriptors):
            return faults.do(plain_open, file, mode, buffering, *text, closefd, opener)
        raw = _Raw(faults, file, mode.replace("b", "").replace("t", ""), closefd, opener)
        if buffering == 0:
            return raw
        buffered = (io.BufferedRandom if "+" in mode else io.BufferedWriter)(raw)
        return buffered if "b" in mode else io.TextIOWrapper(buffered, *text, line_buffering=buffering == 1)

    return open_file


def _on_path(name: str, plain: Callable[..., Any], faults: Faults) -> Callable[..., Any]:
    def call(path: Any, *args: Any, **options: Any) -> Any:
        place = faults.place(path, options.get("dir_fd"))
        if name == "symlink":  # its first argument is what it leads to
            place = faults.place(args[0])
        reads = name == "open" and not (args[0] if args else options["flags"]) & WRITES
        target = faults.place(args[0]) if name in ("replace", "rename") else ""
        faults.note(READ if reads else name, place, to=target)
        found = faults.do(plain, path, *args, **options)
        if name == "open":
            faults.descriptors[found] = place
        return found

    return call


def _on_descriptor(name: str, plain: Callable[..., Any], faults: Faults) -> Callable[..., Any]:
    def call(descriptor: int, *args: Any, **options: Any) -> Any:
        def begin() -> None:
            if name == "write":
                plain(descriptor, bytes(args[0])[: len(args[0]) // 2])

        if descriptor in faults.descriptors:
            faults.note(name, faults.descriptors[descriptor], begin)
        if name == "fsync":  # it would only take time: no power cut follows
            return None
        return faults.do(plain, descriptor, *args, **options)

    return call


def _on_native(plain: Any, faults: Faults) -> Callable[..., Any]:
    def call(path: Any, *args: Any, **options: Any) -> Any:
        faults.note(READ, faults.place(path))
        return plain(path, *args, **options)

    return call


@contextmanager
def inject(faults: Faults) -> Iterator[Faults]:
    """Let operations fail as `faults` says, within the block. In a process of its own: the audit hook stays."""
    plain_open, plain_close = builtins.open, os.close

    def close(descriptor: int) -> None:
        faults.descriptors.pop(descriptor, None)
        plain_close(descriptor)

    replaced: dict[tuple[Any, str], Any] = {(os, "close"): close}
    replaced |= {(os, name): _on_path(name, getattr(os, name), faults) for name in PATH_FUNCTIONS}
    replaced |= {(os, name): _on_descriptor(name, getattr(os, name), faults) for name in DESCRIPTOR_FUNCTIONS}
    for module in (builtins, io):
        replaced[module, "open"] = _open_for(faults, plain_open)
    for name, function in NATIVE:
        if name in sys.modules:
            module = importlib.import_module(name)
            replaced[module, function] = _on_native(getattr(module, function), faults)
    before = {(module, name): getattr(module, name) for module, name in replaced}
    try:
        for (module, name), function in replaced.items():
            setattr(module, name, function)
        _active.append(faults)
        sys.addaudithook(faults.audit)
        yield faults
    finally:
        _active.remove(faults)
        faults.paused = True
        for (module, name), function in before.items():
            setattr(module, name, function)


def in_child(work: Callable[[], int]) -> int:
    """Do the work in a forked process and return its exit code; nothing of it stays in this one."""
    child = os.fork()
    if child == 0:
        code = 70
        try:
            code = work()
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
