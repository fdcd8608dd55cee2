"""`spacenet edit`: change what a saved model knows, or undo its last change."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from tyro.conf import arg

from spacenet.cli.forms import ModelArgument, parse
from spacenet.cli.learning import count_connections
from spacenet.cli.output import print_tables
from spacenet.errors import SettingsError
from spacenet.model.editing import Action, Edit, apply_edit
from spacenet.model.file import load_model
from spacenet.model.journal import undo_path
from spacenet.model.labels import Label, read_class, read_new_label
from spacenet.model.model import Model
from spacenet.report.tables import edited_table
from spacenet.utils.files import real_path
from spacenet.utils.lock import lock

USAGE: dict[Action, str] = {
    "rename": "OLD NEW",
    "merge": "A B --into C",
    "forget": "LABEL",
    "compact": "",
    "undo": "",
}
ACTION_HELP = (
    "rename OLD NEW: give a class another label. merge A B --into C: make one class of several, whose probability is "
    "the sum of theirs. forget LABEL: remove classes, and what is kept of them alone. "
    "compact: drop connections and added units that no output reads; predictions stay as they are. "
    "undo: put the file as it was before the last task or edit in its place, byte for byte."
)


@dataclass(frozen=True)
class EditOptions:
    """Change what a saved model knows, or undo its last change.

    The version before is kept as MODEL.undo: one version, until the next change or undo. After forget none is kept,
    because it would hold the class.
    """

    model: ModelArgument
    action: Annotated[tyro.conf.Positional[Action], arg(metavar="ACTION", help=ACTION_HELP)]
    labels: Annotated[
        tyro.conf.Positional[tuple[str, ...]], arg(metavar="LABEL …", help="Classes.", help_behavior_hint="")
    ] = ()
    into: str | None = None
    """With merge: the label of the new class, one of the merged or another."""
    keep_undo: bool = False
    """With forget: keep the version before, so that it can be undone. It holds the class."""
    json: bool = False
    """Print the summary as JSON."""


def edit(arguments: list[str]) -> int:
    options = parse(EditOptions, arguments, "edit")
    _check(options)
    path = real_path(options.model)
    with lock(path):  # from reading to writing: what another process learns meanwhile would be lost
        summary = _edit(options, path)
    if options.json:
        print(json.dumps(summary))
    else:
        print_tables([edited_table(summary)])
    return 0


def _check(options: EditOptions) -> None:
    """Raise `SettingsError` unless the action has as many labels as it needs."""
    action, given = options.action, len(options.labels)
    counts = {"rename": given == 2, "merge": given >= 1 and options.into is not None}
    counts |= {"forget": given >= 1, "compact": given == 0, "undo": given == 0}
    if not counts[action]:
        usage = f"spacenet edit MODEL {action} {USAGE[action]}".rstrip()
        raise SettingsError(f"{action} takes other labels than these ({given} given): {usage}")
    if options.into is not None and action != "merge":
        raise SettingsError(f"goes with merge, not with {action}", setting="into")
    if options.keep_undo and action != "forget":
        raise SettingsError(f"goes with forget, not with {action}", setting="keep_undo")


def _edit(options: EditOptions, path: Path) -> dict[str, Any]:
    model, size = load_model(path), path.stat().st_size
    connections = count_connections(model)
    model, what = apply_edit(path, model, _read_edit(options, model))
    return {
        "change": what,
        "classes": model.classes,
        "tasks": len(model.tasks),
        "connections": count_connections(model),
        "connections_before": connections,
        "tasks_left": model.space_left(),
        "bytes": path.stat().st_size,
        "bytes_before": size,
        "undo": str(undo_path(path)) if undo_path(path).exists() else None,
        "written": str(path),
    }


def _read_edit(options: EditOptions, model: Model) -> Edit:
    """The change with labels as the model has them, where the command line has texts."""
    given = options.labels[: 1 if options.action == "rename" else None]
    labels = tuple(read_class(text, model.classes) for text in given)
    into: Label | None = None
    if options.action == "rename":
        into = read_new_label(options.labels[1], labels[0])
    elif options.into is not None:
        known = {str(label): label for label in model.classes}
        into = known[options.into] if options.into in known else read_new_label(options.into, labels[0])
    return Edit(options.action, labels, into, options.keep_undo)
