"""Faults of the file system: the n-th open, write, flush, rename or removal below a folder fails, or ends the process.

`inject` replaces the functions through which Python reaches files. What fails is counted, so that a command can be
run once to see how many operations it has, and then once for each of them.
"""

import builtins
import errno
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Kind = Literal["no space", "permission", "gone", "read-only", "killed"]
KINDS: tuple[Kind, ...] = ("no space", "permission", "gone", "read-only", "killed")
ERRORS = {"no space": errno.ENOSPC, "permission": errno.EACCES, "gone": errno.ENOENT, "read-only": errno.EROFS}
KILLED = 137
"""The exit code of a process that was killed."""
PATH_FUNCTIONS = ("open", "replace", "rename", "link", "unlink", "mkdir", "chmod")
"""Functions of `os` whose first argument is a path."""
DESCRIPTOR_FUNCTIONS = ("write", "fsync", "fchmod")
"""Functions of `os` whose first argument is an open file."""


@dataclass
class Faults:
    """Counts operations below `root`, and makes the `at`-th one fail (none, if it is 0)."""

    root: Path
    at: int = 0
    kind: Kind = "no space"
    persistent: bool = False
    """Whether all operations after it fail too, as on a full disk."""
    operations: list[str] = field(default_factory=list)
    descriptors: dict[int, str] = field(default_factory=dict)

    def note(self, operation: str, path: object) -> None:
        """Called before each operation."""
        place = str(Path(os.fsdecode(path)).absolute()) if isinstance(path, str | bytes | os.PathLike) else str(path)
        if not str(place).startswith(str(self.root)):
            return
        self.operations.append(f"{operation} {Path(str(place)).name}")
        number = len(self.operations)
        if self.at and (number == self.at or (self.persistent and number > self.at)):
            if self.kind == "killed":
                os._exit(KILLED)
            raise OSError(ERRORS[self.kind], os.strerror(ERRORS[self.kind]), str(path))


class _File:
    """An open file whose writes are counted."""

    def __init__(self, file: Any, path: str, faults: Faults) -> None:
        self._file, self._path, self._faults = file, path, faults

    def write(self, data: Any) -> Any:
        self._faults.note("write", self._path)
        return self._file.write(data)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        self._faults.note("flush", self._path)
        self._file.flush()

    def __enter__(self) -> "_File":
        self._file.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._file.__exit__(*error)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._file)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@contextmanager
def inject(faults: Faults) -> Iterator[Faults]:
    """Let operations fail as `faults` says, within the block."""
    plain_open = builtins.open
    plain = {name: getattr(os, name) for name in (*PATH_FUNCTIONS, *DESCRIPTOR_FUNCTIONS, "close")}

    def open_file(file: Any, mode: str = "r", *args: Any, **options: Any) -> Any:
        writes = any(letter in mode for letter in "wax+")
        if isinstance(file, int):
            opened = plain_open(file, mode, *args, **options)
            return _File(opened, faults.descriptors[file], faults) if writes and file in faults.descriptors else opened
        faults.note("open", file)
        opened = plain_open(file, mode, *args, **options)
        return _File(opened, str(Path(os.fsdecode(file)).absolute()), faults) if writes else opened

    def on_path(name: str) -> Callable[..., Any]:
        def call(path: Any, *args: Any, **options: Any) -> Any:
            faults.note(name, path)
            found = plain[name](path, *args, **options)
            if name == "open":
                faults.descriptors[found] = str(Path(os.fsdecode(path)).absolute())
            return found

        return call

    def on_descriptor(name: str) -> Callable[..., Any]:
        def call(descriptor: int, *args: Any, **options: Any) -> Any:
            if descriptor in faults.descriptors:
                faults.note(name, faults.descriptors[descriptor])
            return plain[name](descriptor, *args, **options)

        return call

    def close(descriptor: int) -> None:
        faults.descriptors.pop(descriptor, None)
        plain["close"](descriptor)

    replaced = {name: on_path(name) for name in PATH_FUNCTIONS} | {n: on_descriptor(n) for n in DESCRIPTOR_FUNCTIONS}
    try:
        builtins.open = io.open = open_file
        for name, function in (replaced | {"close": close}).items():
            setattr(os, name, function)
        yield faults
    finally:
        builtins.open = io.open = plain_open
        for name, function in plain.items():
            setattr(os, name, function)


def in_child(work: Callable[[], int]) -> int:
    """Do the work in a forked process and return its exit code; nothing of it stays in this one."""
    child = os.fork()
    if child == 0:
        code = 70
        with suppress(BaseException):
            code = work()
        os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
