"""The version before, of a model file that is changed in its place: MODEL.undo beside it, one version.

It is a line with the SHA-256 of the file that came after, and then the bytes of the file as it was. It is written
before the model file is replaced, and used only for that successor: a file that something else has put there since is
left alone. So whatever ends a process at any moment, the model file is the old or the new one, and so is what `undo`
makes of it.
"""

import hashlib
import stat
from contextlib import suppress
from pathlib import Path

from spacenet.errors import ModelFileError
from spacenet.model.file import from_bytes, save_model, to_bytes
from spacenet.model.model import Model
from spacenet.utils.files import atomic_write, real_path, report_os_errors, save_bytes
from spacenet.utils.lock import lock

SUFFIX = ".undo"
MARK = b"spacenet-undo-1 "
LINE = len(MARK) + 64 + 1
"""Bytes of the first line: the mark, the SHA-256 in hexadecimal, the end of the line."""


def undo_path(path: Path) -> Path:
    """Where the version before is kept, of the file that a path leads to."""
    real = real_path(path)
    return real.with_name(real.name + SUFFIX)


def replace_model(path: Path, model: Model, *, keep_undo: bool = True) -> None:
    """Put a changed model into the place of its file and keep the version before, or remove any version before."""
    path = real_path(path)
    with lock(path):
        if keep_undo:
            _keep(path, to_bytes(model))
        else:
            _remove(undo_path(path))
        save_model(path, model)


def replace_file(path: Path, new: Path) -> None:
    """Put a file with a changed model into the place of a model file, and keep the version before if there is one."""
    path = real_path(path)
    with report_os_errors(new, "read"):
        content = new.read_bytes()
    with lock(path):
        if path.exists():
            _keep(path, content)
        save_bytes(path, content)


def undo(path: Path) -> Model:
    """Put the version before in the place of a model file, byte for byte, and return it. There is one step.

    Raises `ModelFileError` if there is no such version, or it is not the one before the file that is there now.
    """
    path = real_path(path)
    kept = undo_path(path)
    with lock(path):
        with report_os_errors(path, "read"):
            now = path.read_bytes()
            held = kept.read_bytes() if kept.exists() else b""
        successor, before = held[:LINE], held[LINE:]
        if not held or before == now:  # the same: a change that was interrupted, or an undo
            raise _nothing_to_undo(path, f"there is no version before it in {kept.name}")
        if successor != _line(now):
            raise _nothing_to_undo(path, f"{kept.name} holds the version before another file than this one")
        try:
            model = from_bytes(before)
        except ModelFileError as error:
            raise type(error)(f"{kept}: {error}") from error
        save_bytes(path, before)
        with suppress(OSError):  # it is done: one that stays holds what the file holds now, and is not used again
            kept.unlink()
    return model


def _nothing_to_undo(path: Path, reason: str) -> ModelFileError:
    changes = "Versions are kept by spacenet learn and spacenet edit where they replace the model file"
    return ModelFileError(f"{path}: nothing to undo: {reason}.", cli=f"{changes}.", python=f"{changes}.")


def _keep(path: Path, new: bytes) -> None:
    with report_os_errors(path, "read"):
        before, mode = path.read_bytes(), stat.S_IMODE(path.stat().st_mode)
    with atomic_write(undo_path(path), mode) as beside:  # readable by no more people than the model
        beside.write_bytes(_line(new) + before)


def _line(content: bytes) -> bytes:
    return MARK + hashlib.sha256(content).hexdigest().encode() + b"\n"


def _remove(path: Path) -> None:
    with report_os_errors(path, "removed"):
        path.unlink(missing_ok=True)
