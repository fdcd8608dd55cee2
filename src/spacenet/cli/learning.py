"""What `spacenet fit` and `spacenet learn` share: a model learns a task, with progress and a summary."""

import json
import logging
import time
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from spacenet.cli.output import print_tables
from spacenet.config.model import ModelConfig
from spacenet.data.preprocessing import Array
from spacenet.experiments.callbacks import Callback, default_callbacks
from spacenet.model.model import Model
from spacenet.report.tables import learned_table
from spacenet.utils.text import plural

log = logging.getLogger("spacenet")


class Learning:
    """A model that learns tasks, from when this is made until `summary`."""

    def __init__(self, model: Model, quiet: bool) -> None:
        self.model, self.quiet = model, quiet
        self.known, self.learned = _keys(model.classes), list[Any]()
        self.connections, self.began, self.before = count_connections(model), time.perf_counter(), len(model.tasks)

    def learn(self, x: Array, y: Array, config: ModelConfig | None = None) -> None:
        """Learn a task."""
        number, classes = len(self.model.tasks) + 1, np.unique(y).tolist()
        self.learned += [label for label in classes if not _keys([label]) & _keys(self.learned)]
        if not self.quiet:
            log.info("task %d: %s samples of %s", number, f"{len(x):,}", plural(len(classes), "class", "es"))
        (callback,) = default_callbacks(not self.quiet) or [Callback()]
        with closing(callback):
            on_batch = partial(callback.on_batch_end, len(self.model.tasks))
            self.model.learn(x[:], y, config=config, on_batch=on_batch, on_epoch=callback.on_epoch_end)

    def summary(self, accuracy: float | None, written: Path) -> dict[str, Any]:
        """What was learned, and at which cost."""
        labels, connections = self.learned, count_connections(self.model)
        return {
            "task": len(self.model.tasks),
            "tasks_added": len(self.model.tasks) - self.before,
            "new_classes": [label for label in labels if not _keys([label]) & self.known],
            "seen_before": [label for label in labels if _keys([label]) & self.known],
            "connections": connections,
            "connections_added": connections - self.connections,
            "tasks_left": self.model.space_left(),
            "seconds": round(time.perf_counter() - self.began, 3),
            "accuracy": accuracy,
            "written": str(written),
        }


def print_summary(summary: dict[str, Any], as_json: bool) -> None:
    """Print what was learned as a table, or as JSON."""
    if as_json:
        print(json.dumps(summary))
    else:
        print_tables([learned_table(summary)])


def count_connections(model: Model) -> int:
    return sum(layer.connections for layer in model.method.layer_usage())


def _keys(labels: Sequence[Any]) -> set[tuple[type, Any]]:
    """Labels with their types: 1, 1.0 and True are different classes."""
    return {(type(label), label) for label in labels}
