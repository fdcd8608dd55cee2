"""Changes of a saved model that need no data: a label renamed, classes merged or removed, the last change undone.

The command line and the service make them with the same functions.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from spacenet.model.file import load_model
from spacenet.model.journal import replace_model, undo
from spacenet.model.labels import Label
from spacenet.model.model import Model
from spacenet.utils.lock import lock

Action = Literal["rename", "merge", "forget", "compact", "undo"]


@dataclass(frozen=True)
class Edit:
    """A change of a model."""

    action: Action
    labels: tuple[Label, ...] = ()
    """The classes to rename, merge or forget."""
    into: Label | None = None
    """The new label, of rename and merge."""
    keep_undo: bool = False
    """With forget: whether the version before is kept. It holds the class."""


def edit_file(path: Path, edit: Edit) -> Model:
    """Change the model in a file and return it. No other process can change the file meanwhile."""
    with lock(path):
        return apply_edit(path, load_model(path), edit)[0]


def apply_edit(path: Path, model: Model, edit: Edit) -> tuple[Model, str]:
    """Change a model that was loaded from a file, and the file; returns the new model, and what was done, in words.

    The caller holds the lock of the file since before the model was loaded.
    """
    if edit.action == "undo":
        return undo(path), "Last change undone"
    change = _change(model, edit)
    replace_model(path, model, keep_undo=edit.action != "forget" or edit.keep_undo)
    return model, change


def _change(model: Model, edit: Edit) -> str:
    names = ", ".join(map(str, edit.labels))
    match edit.action:
        case "rename":
            (old,) = edit.labels
            model.rename(old, _into(edit))
            return f"Class {old} renamed to {edit.into}"
        case "merge":
            model.merge(edit.labels, _into(edit))
            return f"Classes {names} merged into {edit.into}"
        case "forget":
            for label in edit.labels:
                model.forget(label)
            return f"{'Class' if len(edit.labels) == 1 else 'Classes'} {names} removed"
        case _:
            model.compact()
            return "What no output reads is dropped"


def _into(edit: Edit) -> Label:
    assert edit.into is not None, f"{edit.action} needs a new label"
    return edit.into
