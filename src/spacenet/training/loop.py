"""The training loop. There is one, for every method; it knows none of them by name."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.optim import Optimizer

from spacenet.errors import RunError, SettingsError
from spacenet.methods.base import Batch, Method
from spacenet.seeding import generator
from spacenet.streams.stream import Task


@dataclass(frozen=True)
class TrainingSettings:
    """How a task is trained."""

    epochs: int = 4
    """Passes over the task's data."""
    batch_size: int = 128
    """Samples per step."""
    learning_rate: float = 0.01
    """Step size."""
    optimizer: Literal["sgd", "adam"] = "sgd"
    """The optimiser."""
    momentum: float = 0.0
    """Momentum of SGD."""
    weight_decay: float = 0.0
    """Decay of the weights that the task may change."""
    threads: int = 1
    """Processor threads of one run. More may change the last bits of a result."""

    def __post_init__(self) -> None:
        for name, least in (("epochs", 1), ("batch_size", 1), ("threads", 1)):
            if getattr(self, name) < least:
                raise SettingsError(
                    f"{name.replace('_', '-')}: {getattr(self, name)} is too small (need {least} or more)"
                )
        if not (self.learning_rate > 0 and math.isfinite(self.learning_rate)):
            raise SettingsError(f"learning-rate: {self.learning_rate} is not a step size (need more than 0)")
        if not 0 <= self.momentum < 1:
            raise SettingsError(f"momentum: {self.momentum} is out of range (need 0 ≤ momentum < 1)")
        if self.weight_decay < 0:
            raise SettingsError(f"weight-decay: {self.weight_decay} is negative")


@dataclass(frozen=True)
class Epoch:
    """What happened in one epoch."""

    task: int
    epoch: int
    epochs: int
    loss: float
    accuracy: float
    """Accuracy on the training samples while they were being learned, in percent."""


@dataclass(frozen=True)
class Position:
    """Where in a task a run stands, and what is needed to go on there."""

    epochs_done: int
    task_state: Mapping[str, Tensor]
    optimizer: Mapping[str, Tensor]


def learn_task(
    method: Method,
    task: Task,
    settings: TrainingSettings,
    *,
    start: Position | None = None,
    on_batch: Callable[[int, int], None],
    on_epoch: Callable[[Epoch, Optimizer], None],
) -> None:
    """Train a method on a task, from its beginning or from `start`.

    `on_batch` is told the batches done and all batches of the task; `on_epoch` may save what it is given.
    """
    data = method.training_data(task)
    if start is None:
        method.begin_task(task, data)
    else:
        method.resume_task(task, data, start.task_state)
    optimizer = make_optimizer(method, settings)
    if start is not None:
        load_optimizer(optimizer, start.optimizer)
    epochs, batches = method.epochs(settings.epochs), math.ceil(len(data) / settings.batch_size)

    for epoch in range(start.epochs_done if start else 0, epochs):
        order = torch.randperm(len(data), generator=generator(method.seed, "shuffle", task.index, epoch))
        total, right = torch.zeros(()), torch.zeros(())
        for number, rows in enumerate(order.split(settings.batch_size), 1):
            batch = Batch.pick(data, rows)
            output = method.forward(batch)
            loss = method.loss(output, batch)
            optimizer.zero_grad()
            loss.backward()
            method.step(optimizer)
            total += loss.detach() * len(rows)
            right += (output.detach().argmax(1) == method.target(batch)).sum()
            on_batch(epoch * batches + number, epochs * batches)
        method.end_epoch(epoch, optimizer, last=epoch == epochs - 1)
        if {id(p) for p in method.parameters()} != {id(p) for p in optimizer.param_groups[0]["params"]}:
            optimizer = make_optimizer(method, settings)
        if not math.isfinite(float(total)):
            raise RunError(
                f"training diverged: the loss of task {task.index + 1}, epoch {epoch + 1} is {float(total)}. "
                "A smaller --learning-rate usually helps."
            )
        report = Epoch(task.index, epoch, epochs, float(total) / len(data), 100 * float(right) / len(data))
        on_epoch(report, optimizer)
    method.end_task(task)


def make_optimizer(method: Method, settings: TrainingSettings) -> Optimizer:
    if settings.optimizer == "adam":
        return torch.optim.Adam(method.parameters(), settings.learning_rate, weight_decay=settings.weight_decay)
    return torch.optim.SGD(
        method.parameters(), settings.learning_rate, settings.momentum, weight_decay=settings.weight_decay
    )


def optimizer_tensors(optimizer: Optimizer) -> dict[str, Tensor]:
    """The optimiser's history (momentum and the like) by parameter number and name."""
    state = optimizer.state_dict()["state"]
    return {
        f"{number}/{name}": value
        for number, values in state.items()
        for name, value in values.items()
        if value is not None
    }


def load_optimizer(optimizer: Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Take back what `optimizer_tensors` gave."""
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        number, name = key.split("/")
        state.setdefault(int(number), {})[name] = value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
