"""What a model does with samples that it is to learn from: their weights, which ones are of known classes, and a task
of the others."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from spacenet.config.training import TrainingConfig
from spacenet.data.preprocessing import Array
from spacenet.data.stream import Samples, Task
from spacenet.errors import DataError
from spacenet.methods.base import Method
from spacenet.training.hardware import Hardware
from spacenet.training.loop import Epoch, learn_task, warn_of_chance
from spacenet.utils.optimizers import Optimizer

if TYPE_CHECKING:
    from spacenet.model.model import Model

log = logging.getLogger("spacenet")
FEW = 1
"""With room for so few more tasks, learning warns."""


def apply_weights(x: Array, y: Array, given: Array | None) -> tuple[Array, Array, Tensor | None]:
    """Samples without those of weight 0, their labels, and their weights if these differ."""
    if given is None:
        return x, y, None
    weight = np.asarray(given, dtype=np.float64)
    if weight.shape != (len(y),):
        raise DataError(f"{len(y)} samples and weights of the shape {weight.shape}; give one weight per sample")
    if not (np.isfinite(weight) & (weight >= 0)).all():
        raise DataError("weights of samples must be finite and at least 0")
    if not weight.any():
        raise DataError("all samples have the weight 0")
    rows = np.flatnonzero(weight)
    if len(rows) < len(y):
        x, y, weight = x[rows], y[rows], weight[rows]
    return x, y, None if (weight == 1).all() else torch.from_numpy(weight).float()


def find_outputs(model: "Model", x: Array, y: Array) -> Array:
    """For each sample the output of the model that has its label, (n,); of several the one with the largest score. -1
    for new classes, and for all where known ones are learned as a new task."""
    places: dict[tuple[type, object], list[int]] = {}
    for number, label in enumerate(model.outputs):
        places.setdefault((type(label), label), []).append(number)
    labels, numbers = np.unique(y, return_inverse=True)
    outputs = [places.get((type(label), label), []) for label in labels.tolist()]
    if not any(outputs) or model.method.relearns_known:
        return np.full(len(y), -1)
    if not model.method.can_update:
        log.warning("samples of known classes are learned as a new task, because %s", model.method.why_no_update)
        return np.full(len(y), -1)
    found = np.array([own[0] if own else -1 for own in outputs])[numbers.reshape(-1)]
    for place, own in enumerate(outputs):
        if len(own) > 1:
            rows = np.flatnonzero(numbers.reshape(-1) == place)
            found[rows] = np.array(own)[model.scores(x[rows])[:, own].argmax(1).numpy()]
    return found


def train_task(
    method: Method,
    task: Task,
    training: TrainingConfig,
    hardware: Hardware,
    on_batch: Callable[[int, int], None],
    on_epoch: Callable[[Epoch], None],
) -> None:
    """Train a method on a task, and warn if the last epoch was no better than chance."""
    epochs: list[Epoch] = []

    def note_epoch(epoch: Epoch, optimizer: Optimizer) -> None:
        epochs[:] = [epoch]
        on_epoch(epoch)

    learn_task(method, task, training, hardware=hardware, on_batch=on_batch, on_epoch=note_epoch)
    if epochs and (warning := warn_of_chance(task.index, epochs[0].accuracy, task.train.y - task.classes.start)):
        log.warning("spacenet: warning: %s", warning)


def warn_of_space(method: Method, classes: int) -> None:
    """Warn if a model is almost full after a task with so many classes."""
    if method.needs_old_data or method.grows:
        return
    left = method.space_left(classes, FEW + 1)
    if left is None or left > FEW:
        return
    room = f"there is room for {left} more task like the last one" if left else "there is no room for another task"
    expected = getattr(method.settings, "expected_tasks", None)
    why = ", because expected_tasks is 1" if method.tasks_learned == 1 and expected == 1 else ""
    log.warning("spacenet: warning: %s%s; expand=auto adds units where one does not fit", room, why)


@dataclass(frozen=True)
class InMemory:
    """Samples that are there already."""

    train: Samples

    def samples(self, task: Task, *, train: bool) -> Samples:
        assert train, "there are no test samples"
        return self.train
