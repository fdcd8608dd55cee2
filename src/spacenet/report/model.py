"""What a model holds, and what it learned last, as tables."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from spacenet.methods.density.densities import ClassMemory
from spacenet.model.inspection import Inspection
from spacenet.model.predictions import readable
from spacenet.report.tables import bytes_text, table
from spacenet.space.forecast import LIMIT

SHOWN = 20
"""Labels that are listed; of more only the first ones."""
NOUNS = {"edges": "edges of images", "features": "features of the first task"}
NAMES = {"acc": "ACC", "bwt": "BWT", "forgetting": "forgetting", "fwt": "forward transfer"}


def inspection_report(found: Inspection) -> RenderableType:
    """Everything about a model."""
    parts = [_model_table(found), _space_table(found), _tasks_table(found), _sizes_table(found)]
    return Group(*parts, _measured_table(found)) if found.measured else Group(*parts)


def learned_table(summary: Mapping[str, Any]) -> Table:
    """What came of `spacenet learn`."""
    rows = [
        ["new classes", labels_text(summary["new_classes"])],
        ["seen before", labels_text(summary["seen_before"])],
        ["connections", f"{summary['connections']:,} ({summary['connections_added']:,} of them new)"],
        ["space", left_text(summary["tasks_left"])],
        ["time", f"{summary['seconds']:.1f} s"],
    ]
    if summary["accuracy"] is not None:
        rows.append(["accuracy", f"{summary['accuracy']:.2f} % on the file's test samples"])
    rows.append(["written to", _plain(summary["written"])])
    return _pairs(f"Task {summary['task']} is learned", rows)


def labels_text(labels: Sequence[Any]) -> str:
    """Labels in a row."""
    shown = ", ".join(_plain(label) for label in labels[:SHOWN]) or "none"
    return shown if len(labels) <= SHOWN else f"{shown}, … ({len(labels)} in all)"


def left_text(tasks: int | None) -> str:
    """How much more fits."""
    if tasks is None:
        return "this method learns on only with all old data"
    if tasks == 0:
        return "full: no more task like the last one fits"
    count = "1 more task" if tasks == 1 else f"{tasks}{' or more' if tasks == LIMIT else ''} more tasks"
    return f"room for {count} like the last one"


def _model_table(found: Inspection) -> Table:
    rows = [
        ["method", f"{found.method}, seed {found.seed}"],
        ["network", f"{found.net}, hidden layers of {' '.join(map(str, found.hidden))}"],
        ["input", f"{'×'.join(map(str, found.input_shape))}, {found.inputs_used:,} of {found.inputs:,} units used"],
        ["normalization", found.normalization],
        ["training", _training(found.training)],
        ["classes", f"{len(found.classes)}: {labels_text(found.classes)}"],
        ["space", left_text(found.tasks_left)],
    ]
    if found.class_memory is not None:
        rows.insert(-1, ["kept of classes", kept_text(found.class_memory)])
    return _pairs("The model", rows)


def kept_text(kept: ClassMemory) -> str:
    """What is kept of each class."""
    number = "1 Gaussian" if kept.gaussians == 1 else f"{kept.gaussians} Gaussians"
    directions = "1 direction" if kept.directions == 1 else f"{kept.directions} directions"
    each = f"{number} × {directions} on {kept.dimensions:,} {NOUNS.get(kept.representation, kept.representation)}"
    return f"{each}: {kept.floats:,} numbers for each class, {bytes_text(kept.bytes)} in all"


def _training(settings: Mapping[str, Any]) -> str:
    epochs = settings["epochs"]
    parts = [f"{epochs} {'epoch' if epochs == 1 else 'epochs'}", f"batches of {settings['batch_size']}"]
    parts += [str(settings["optimizer"]), f"learning rate {settings['learning_rate']:g}"]
    parts += [f"{name.replace('_', ' ')} {settings[name]:g}" for name in ("momentum", "weight_decay") if settings[name]]
    return ", ".join(parts + ([str(settings["augment"])] if settings["augment"] != "none" else []))


def _space_table(found: Inspection) -> Table:
    columns = ["layer", "units", "unused", "free, used", "reserved", "of several", "connections"]
    fields = ("units", "unused", "shared", "reserved", "several", "connections")
    rows = [[layer.name, *(f"{getattr(layer, field):,}" for field in fields)] for layer in found.layers]
    rows.append(["outputs", f"{found.outputs:,}", "", "", "", "", f"{found.outputs_connections:,}"])
    return table("The space", columns, rows)


def _tasks_table(found: Inspection) -> Table:
    rows = [
        [str(task.number), labels_text(task.classes), f"{task.reserved:,}", f"{task.connections:,}"]
        for task in found.tasks
    ]
    drawn = table("The tasks", ["task", "classes", "units reserved", "connections"], rows)
    drawn.columns[1].justify, drawn.columns[1].no_wrap, drawn.columns[1].overflow = "left", False, "fold"
    return drawn


def _sizes_table(found: Inspection) -> Table:
    sizes = found.sizes
    besides = ", and what is kept of classes" if found.class_memory else ""
    numbers = f", {found.weights:,} weights" if found.weights != found.connections else ""
    rows = [
        ["file", f"{bytes_text(sizes.file)}, {sizes.per_connection:.1f} bytes per connection"],
        ["connections", f"{found.connections:,}{numbers}"],
        ["to predict", f"{bytes_text(sizes.packed)} (the network without what is not used{besides})"],
        ["to learn on", f"{bytes_text(sizes.ledger)} (who owns what{besides})"],
        ["for comparison", f"{bytes_text(sizes.dense)} (all weights of the network, were it dense)"],
    ]
    return _pairs("Sizes", rows)


def _measured_table(found: Inspection) -> Table:
    after, now = found.measured_after, len(found.tasks)
    rows = [[NAMES[name], f"{value:.2f}"] for name, value in found.measured.items()]
    if after is not None:
        rows.append(["when", f"after {after} tasks" + (f"; now there are {now}" if after != now else "")])
    if found.measured_on:
        rows.append(["on", _plain(found.measured_on)])
    return _pairs("Measured by the run that the model comes from", rows)


def _pairs(title: str, rows: Sequence[Sequence[str]]) -> Table:
    """Names and what is to be said of each."""
    drawn = table(title, ["", ""], rows)
    drawn.show_header = False
    drawn.columns[1].justify, drawn.columns[1].no_wrap, drawn.columns[1].overflow = "left", False, "fold"
    return drawn


def _plain(text: object) -> str:
    """As it is: not markup, nothing that could steer a terminal."""
    return escape(readable(text))
