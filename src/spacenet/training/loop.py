"""The training loop, one for all methods."""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from spacenet.config.training import TrainingConfig
from spacenet.data.augmentation import CropAndFlip
from spacenet.data.checks import MAX_MAGNITUDE
from spacenet.data.stream import Samples, Task
from spacenet.errors import RunError
from spacenet.methods.base import Method
from spacenet.training.hardware import Hardware
from spacenet.training.step import RecordedStep, Step
from spacenet.utils.optimizers import SGD, Adam, Optimizer
from spacenet.utils.seeding import generator

NEAR_CHANCE = 0.1
"""Training accuracy is near chance if it makes up for less than this part of what chance gets wrong."""
CHECKED = 32
"""Samples whose scores are looked at when a task is learned."""


@dataclass(frozen=True)
class Epoch:
    """The figures of one epoch."""

    task: int
    epoch: int
    epochs: int
    loss: float
    accuracy: float  # accuracy on the training samples while they were being learned, in percent

    def describe(self, tasks: int | None = None) -> str:
        """One line about the epoch; `tasks` is the number of all tasks, where it is known."""
        task = f"task {self.task + 1}" + (f"/{tasks}" if tasks else "")
        figures = f"loss {self.loss:.4f}  training accuracy {self.accuracy:.1f} %"
        return f"{task}  epoch {self.epoch + 1}/{self.epochs}  {figures}"


def warn_of_chance(task: int, accuracy: float, y: Tensor) -> str | None:
    """A warning if a task was not learned: the training accuracy of its last epoch is near that of the largest class.

    `accuracy` is in percent, `y` are the classes of the training samples.
    """
    counts = y.bincount()
    chance = 100 * float(counts.max()) / len(y)
    if int((counts > 0).sum()) < 2 or accuracy >= chance + NEAR_CHANCE * (100 - chance):
        return None
    return (
        f"task {task + 1} was hardly learned: the training accuracy ended at {accuracy:.1f} %, and always "
        f"answering its largest class gives {chance:.1f} %. Another learning rate, more epochs or more connections may "
        "help; see also whether the inputs tell the classes apart."
    )


@dataclass(frozen=True)
class Position:
    """Where in a task to continue; the method has loaded its state already."""

    epochs_done: int
    optimizer: Mapping[str, Tensor]  # what the optimizer's `state_tensors` returned


def learn_task(
    method: Method,
    task: Task,
    settings: TrainingConfig,
    *,
    hardware: Hardware | None = None,
    start: Position | None = None,
    on_batch: Callable[[int, int], None],
    on_epoch: Callable[[Epoch, Optimizer], None],
) -> None:
    """Train a method on a task, from its beginning or from `start`.

    `on_batch` gets the number of batches done and that of all batches; `on_epoch` gets the figures and the optimizer.
    """
    hardware = hardware or Hardware()
    data, augment = training_data(method, task, settings, hardware)
    (method.begin_task if start is None else method.resume_task)(task, data)
    epochs = method.epochs(settings.epochs_of(task.index, len(data)))
    if not epochs:
        method.end_task(task)
        return
    factor = method.rate_factor(task) if settings.optimizer == "sgd" else 1.0
    optimizer = make_optimizer(method, settings)
    if start is not None:
        optimizer.load_state_tensors(start.optimizer)
    step = make_step(method, data, optimizer, hardware, augment)

    for epoch in range(start.epochs_done if start else 0, epochs):
        batches = _batches(step, task, epoch, settings)
        optimizer.set_rate(settings.rate(epoch, epochs) * factor)
        method.begin_epoch(epoch)
        with _seed_dropout(method, task, epoch):
            for number, rows in enumerate(batches, 1):
                step(rows)
                on_batch(epoch * len(batches) + number, epochs * len(batches))
        hardware.average(method.statistics())
        loss, accuracy = step.summarize()
        if not math.isfinite(loss):
            raise _diverged(f"the loss of task {task.index + 1}, epoch {epoch + 1} is {loss}")
        method.end_epoch(epoch, optimizer, last=epoch == epochs - 1)
        if {id(p) for p in method.parameters()} != {id(p) for p in optimizer.parameters}:
            optimizer = make_optimizer(method, settings)
            step = make_step(method, data, optimizer, hardware, augment)
        on_epoch(Epoch(task.index, epoch, epochs, loss, 100 * accuracy), optimizer)
    # The running statistics of batch norm once more, with the final weights.
    for epoch in range(epochs, epochs + settings.bn_recalibration_epochs) if method.statistics() else ():
        with _seed_dropout(method, task, epoch):
            for rows in _batches(step, task, epoch, settings):
                step.update_statistics(rows)
        hardware.average(method.statistics())
    method.end_task(task)
    _check_scores(method, task)


@contextmanager
def _seed_dropout(method: Method, task: Task, epoch: int) -> Iterator[None]:
    """Draw what is dropped in an epoch from the seed and the epoch alone; PyTorch's own generators stay as they are."""
    if not method.blueprint.drops:
        yield
        return
    with torch.random.fork_rng(devices=[method.device] if method.device.type == "cuda" else []):
        torch.manual_seed(generator(method.seed, "dropout", task.index, epoch).initial_seed())
        yield


def _check_scores(method: Method, task: Task) -> None:
    """Raise `RunError` if a task has left weights to compute nothing with. The loss is measured before each step, so
    what the last one has done shows only here.

    The task's largest samples must have finite scores, and samples like those of the first task, whose values are
    around 1, must not have huge ones: what is learned from very large values may make units dead for them alone.
    """
    x = task.train.x
    low, high = x.flatten(1).aminmax(dim=1)
    largest = x[torch.maximum(high, -low).topk(min(CHECKED, len(x))).indices]
    usual = torch.randn(CHECKED, *x.shape[1:], generator=torch.Generator().manual_seed(0))
    for samples, most in ((largest, math.inf), (usual, MAX_MAGNITUDE)):
        best = method.predict_all(samples).amax(1)
        if not bool((best.abs() < most).all()):  # not for NaN either
            raise _diverged(f"after task {task.index + 1}, scores of up to {float(best.abs().max()):.1e} are found")


def _diverged(reason: str) -> RunError:
    cli, python = (f"A smaller {name} usually helps." for name in ("--learning-rate", "learning_rate"))
    return RunError(f"training diverged: {reason}.", cli=cli, python=python)


def training_data(
    method: Method, task: Task, settings: TrainingConfig, hardware: Hardware
) -> tuple[Samples, CropAndFlip | None]:
    """What the method is trained on, on the device, and its augmentation."""
    data = method.training_data(task).to(hardware.device)
    return (data, None) if settings.augment == "none" else (replace(data, augmented=True), CropAndFlip(data))


def _batches(step: Step, task: Task, epoch: int, settings: TrainingConfig) -> tuple[Tensor, ...]:
    """The rows of each batch of an epoch, and its augmentation: both follow from the seed and the epoch alone."""
    seed = step.method.seed
    order = torch.randperm(len(step.data), generator=generator(seed, "shuffle", task.index, epoch))
    if step.augment is not None:
        step.augment.draw(generator(seed, "augment", task.index, epoch))
    batches: tuple[Tensor, ...] = order.to(step.hardware.device).split(settings.batch_size)
    # With batch norm, a last batch that is not full is left out: the statistics of a few samples are unreliable.
    short = step.method.statistics() and len(batches[-1]) < settings.batch_size
    return batches[:-1] if short and len(batches) > 1 else batches


def make_step(
    method: Method, data: Samples, optimizer: Optimizer, hardware: Hardware, augment: CropAndFlip | None = None
) -> Step:
    """The step in the form that suits the hardware and the method."""
    kind = RecordedStep if hardware.graphs and method.cuda_graph_safe else Step
    return kind(method, data, optimizer, hardware, augment)


def make_optimizer(method: Method, settings: TrainingConfig) -> Optimizer:
    parameters, rate, decay = method.named_parameters(), settings.initial_rate, settings.weight_decay
    if settings.optimizer == "adam":
        return Adam(parameters, rate, weight_decay=decay)
    return SGD(parameters, rate, settings.momentum, decay, nesterov=settings.nesterov)
