"""`spacenet learn`: add a task to a saved model."""

import json
import time
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from annotated_types import Ge

from spacenet.cli.forms import ModelArgument, parse
from spacenet.cli.output import output_file, print_tables
from spacenet.data.arrays import read_arrays
from spacenet.data.preprocessing import Array
from spacenet.errors import DataError
from spacenet.experiments.callbacks import Callback, default_callbacks
from spacenet.model.file import load_model, save_model
from spacenet.model.model import Model
from spacenet.model.predictions import accuracy
from spacenet.report.tables import learned_table
from spacenet.utils.files import real_path
from spacenet.utils.lock import lock


@dataclass(frozen=True)
class LearnOptions:
    """Add one task, all classes in a file, to a saved model. What it learned before stays as it is."""

    model: ModelArgument
    npz: Path
    """What to learn: x_train and y_train, or x and y; with x_test and y_test the result is evaluated."""
    out: Path | None = None
    """Write the new model here (default: replace the old one, in one move when it is complete)."""
    epochs: Annotated[int, Ge(1)] | None = None
    """Passes over the data, for this task only (default: what the model was made with)."""
    expand: str | None = None
    """Add units for this task: auto where it does not fit (default: what the model was made with)."""
    json: bool = False
    """Print the summary as JSON."""
    quiet: bool = False
    """Show no progress."""


def learn(arguments: list[str]) -> int:
    options = parse(LearnOptions, arguments, "learn")
    out = real_path(output_file(options.out or options.model, inputs=[options.npz]))
    with lock(out):  # from reading to writing: what another process learns meanwhile would be lost
        summary = _learn(options, out)
    if options.json:
        print(json.dumps(summary))
    else:
        print_tables([learned_table(summary)])
    return 0


def _learn(options: LearnOptions, out: Path) -> dict[str, Any]:
    model = load_model(options.model)
    x, y, *test = read_task(options.npz.expanduser(), model)
    known, connections = {(type(label), label) for label in model.classes}, _connections(model)
    began, config = time.perf_counter(), model.config
    given = {"epochs": options.epochs, "expand": options.expand}
    changed = config.replace(**{name: value for name, value in given.items() if value is not None})
    (callback,) = default_callbacks(not options.quiet) or [Callback()]
    with closing(callback):
        on_batch = partial(callback.on_batch_end, len(model.tasks))
        model.learn(x, y, config=changed, on_batch=on_batch, on_epoch=callback.on_epoch_end)
    model.config = config
    labels, seconds = model.tasks[-1], time.perf_counter() - began
    summary = {
        "task": len(model.tasks),
        "new_classes": [label for label in labels if (type(label), label) not in known],
        "seen_before": [label for label in labels if (type(label), label) in known],
        "connections": _connections(model),
        "connections_added": _connections(model) - connections,
        "tasks_left": model.space_left(),
        "seconds": round(seconds, 3),
        "accuracy": accuracy(model, *test) if test else None,
        "written": str(out),
    }
    save_model(out, model)
    return summary


def read_task(path: Path, model: Model) -> list[Array]:
    """What a file holds for a model to learn: x, y and, to evaluate it with, x and y again if the file has them."""
    arrays = read_arrays(path, ("x_train", "y_train"), ("x", "y"), optional=("x_test", "y_test"))
    x, y, *test = arrays.values()
    if len(test) == 1:
        raise DataError(f"{path}: has one of x_test and y_test; give both or neither")
    try:
        for given in ((x, y), tuple(test)) if test else ((x, y),):
            model.check_task(*given)
    except DataError as error:
        raise DataError(f"{path}: {error}") from error
    return [x, y, *test]


def _connections(model: Model) -> int:
    return sum(map(len, model.method.ledger.connections.values()))
