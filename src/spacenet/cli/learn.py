"""`spacenet learn`: add a task to a saved model."""

import dataclasses
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from tyro.conf import arg

from spacenet.cli.options import MARKERS
from spacenet.cli.progress import PLAIN_PAUSE
from spacenet.data.inputs import looks_scaled
from spacenet.data.npy import read_arrays
from spacenet.data.preprocessing import Array
from spacenet.errors import DataError, SettingsError
from spacenet.experiments.callbacks import print_line
from spacenet.model.file import load_model, save_model
from spacenet.model.model import Label, Model
from spacenet.model.predictions import accuracy
from spacenet.option_types import Flag, OptionalInt, OptionalPath
from spacenet.report.model import learned_table
from spacenet.training.loop import Epoch

DESCRIPTION = "Add one task, all classes in a file, to a saved model. What it knew before stays as it is."
OnBatch = Callable[[int, int], None]
OnEpoch = Callable[[Epoch], None]


@dataclass(frozen=True)
class LearnOptions:
    """Which model learns what."""

    model: Annotated[tyro.conf.Positional[Path], arg(metavar="MODEL", help="A model file.")]
    npz: Annotated[Path, arg(metavar="FILE")]
    """What to learn: x_train and y_train, or x and y; with x_test and y_test the result is measured."""
    out: OptionalPath = None
    """Write the new model here (default: in the place of the old one, in one move when it is complete)."""
    epochs: OptionalInt = None
    """Passes over the data, for this task only (default: what the model was made with)."""
    json: Flag = False
    """Print the summary as JSON."""
    quiet: Flag = False
    """Show no progress."""


@dataclass(frozen=True)
class NewTask:
    """What there is to learn, and to measure it with."""

    x: Array
    y: Array
    test: tuple[Array, Array] | None


def learn(arguments: list[str]) -> int:
    """Carry out `spacenet learn …`."""
    options = tyro.cli(LearnOptions, prog="spacenet learn", description=DESCRIPTION, args=arguments, config=MARKERS)
    out = _target(options)
    model = load_model(options.model)
    task = read_task(options.npz.expanduser(), model)
    before = model.classes, _connections(model)
    began = time.perf_counter()
    with _progress(options.quiet) as (on_batch, on_epoch):
        _learn(model, task, options.epochs, on_batch, on_epoch)
    summary = _summary(model, before, time.perf_counter() - began)
    if task.test is not None:
        summary["accuracy"] = accuracy(model, *task.test)
    save_model(out, model)
    summary["written"] = str(out)
    if options.json:
        print(json.dumps(summary))
    else:
        Console().print(learned_table(summary))
    return 0


def _target(options: LearnOptions) -> Path:
    """Where the result goes; that it cannot go there should not show only after hours of learning."""
    out = (options.out or options.model).expanduser().resolve()  # a link stays a link
    if out.is_dir():
        raise SettingsError(f"out: {out} is a folder")
    if not os.access(out.parent, os.W_OK):
        raise SettingsError(f"out: nothing can be written into {out.parent}")
    return out


def read_task(path: Path, model: Model) -> NewTask:
    """What a file holds for a model to learn."""
    arrays = read_arrays(path, ("x_train", "y_train"), ("x", "y"), optional=("x_test", "y_test"))
    x, y, *test = arrays.values()
    if len(test) == 1:
        raise DataError(f"{path}: has one of x_test and y_test; give both or neither")
    for a, b in ((x, y), test) if test else ((x, y),):
        if len(a) != len(b):
            raise DataError(f"{path}: {len(a)} samples and {len(b)} labels; give one label per sample")
        try:
            model.check_shape(a)
        except DataError as error:
            raise DataError(f"{path}: {error}") from error
        if model.normalization and looks_scaled(a, model.normalization.scale):
            raise DataError(
                f"{path}: its values lie between 0 and 1, and the model learned from bytes (0 to 255); "
                "multiply them by 255"
            )
    _check_labels(path, model.classes, np.unique(y).tolist())
    return NewTask(x, y, (test[0], test[1]) if test else None)


def _check_labels(path: Path, known: Sequence[Label], new: Sequence[Label]) -> None:
    """The number 3 and the word 3 would be two classes that nobody can tell apart."""
    kinds = {str(label): type(label) for label in known}
    for label in new:
        if kinds.get(str(label), type(label)) is not type(label):
            words, number = f"the word {str(label)!r}", f"the number {label}"
            mine, theirs = (words, number) if isinstance(label, str) else (number, words)
            raise DataError(f"{path}: has {mine} as a label, and the model knows {theirs}; use the same type")


def _learn(model: Model, task: NewTask, epochs: int | None, on_batch: OnBatch, on_epoch: OnEpoch) -> None:
    recipe = model.recipe
    if epochs is not None:
        model.recipe = dataclasses.replace(recipe, training=dataclasses.replace(recipe.training, epochs=epochs))
    model.learn(task.x, task.y, on_batch, on_epoch)
    model.recipe = recipe


def _connections(model: Model) -> int:
    return sum(map(len, model.method.ledger.connections.values()))


def _summary(model: Model, before: tuple[list[Label], int], seconds: float) -> dict[str, Any]:
    known = {(type(label), label) for label in before[0]}
    labels = model.tasks[-1]
    return {
        "task": len(model.tasks),
        "new_classes": [label for label in labels if (type(label), label) not in known],
        "seen_before": [label for label in labels if (type(label), label) in known],
        "connections": _connections(model),
        "connections_added": _connections(model) - before[1],
        "tasks_left": model.space_left(),
        "seconds": round(seconds, 3),
        "accuracy": None,
    }


@contextmanager
def _progress(quiet: bool) -> Iterator[tuple[OnBatch, OnEpoch]]:
    """A live bar in a terminal, lines elsewhere."""
    console = Console(stderr=True)
    if quiet:
        yield (lambda done, total: None), (lambda epoch: None)
    elif not console.is_terminal:
        yield (lambda done, total: None), _lines()
    else:
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        with Progress(*columns, console=console, transient=True) as bar:
            row = bar.add_task("learning", total=None)
            yield (
                lambda done, total: bar.update(row, completed=done, total=total),
                lambda epoch: bar.update(row, description=_line(epoch)),
            )


def _lines() -> OnEpoch:
    last = -PLAIN_PAUSE

    def show(epoch: Epoch) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= PLAIN_PAUSE or epoch.epoch + 1 == epoch.epochs:
            last = now
            print_line(_line(epoch))

    return show


def _line(epoch: Epoch) -> str:
    return (
        f"task {epoch.task + 1}  epoch {epoch.epoch + 1}/{epoch.epochs}  loss {epoch.loss:.4f}  "
        f"training accuracy {epoch.accuracy:.1f} %"
    )
