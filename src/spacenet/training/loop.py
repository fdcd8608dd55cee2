"""The training loop. There is one, for every method; it knows none of them by name."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.optim import Optimizer

from spacenet.config.training import TrainingConfig
from spacenet.data.augmentation import CropAndFlip
from spacenet.data.stream import Samples, Task
from spacenet.errors import RunError
from spacenet.methods.base import Method
from spacenet.training.hardware import Hardware
from spacenet.training.step import RecordedStep, Step
from spacenet.utils.seeding import generator


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
    """Where in a task a run stands; the method has loaded its state already."""

    epochs_done: int
    optimizer: Mapping[str, Tensor]


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

    `on_batch` is told the batches done and all batches of the task; `on_epoch` may save what it is given.
    """
    hardware = hardware or Hardware()
    data, augment = training_data(method, task, settings, hardware)
    if start is None:
        method.begin_task(task, data)
    else:
        method.resume_task(task, data)
    epochs = method.epochs(settings.epochs_of(task.index))
    if not epochs:  # nothing is trained
        method.end_task(task)
        return
    optimizer = make_optimizer(method, settings)
    if start is not None:
        load_optimizer(optimizer, start.optimizer)
    step = make_step(method, data, optimizer, hardware, augment)

    for epoch in range(start.epochs_done if start else 0, epochs):
        batches = _batches(step, task, epoch, settings)
        set_rate(optimizer, settings.rate(epoch, epochs))
        method.begin_epoch(epoch)
        for number, rows in enumerate(batches, 1):
            step(rows)
            on_batch(epoch * len(batches) + number, epochs * len(batches))
        hardware.average(method.statistics())
        loss, right = step.figures()
        method.end_epoch(epoch, optimizer, last=epoch == epochs - 1)
        if {id(p) for p in method.parameters()} != {id(p) for p in optimizer.param_groups[0]["params"]}:
            optimizer = make_optimizer(method, settings)
            step = make_step(method, data, optimizer, hardware, augment)
        if not math.isfinite(loss):
            raise RunError(
                f"training diverged: the loss of task {task.index + 1}, epoch {epoch + 1} is {loss}.",
                cli="A smaller --learning-rate usually helps.",
                python="A smaller learning_rate usually helps.",
            )
        on_epoch(Epoch(task.index, epoch, epochs, loss, 100 * right), optimizer)
    if method.statistics():
        _settle(step, task, epochs, settings)
    method.end_task(task)


def _settle(step: Step, task: Task, epochs: int, settings: TrainingConfig) -> None:
    """Let batch norm's statistics follow the final weights."""
    for number in range(epochs, epochs + settings.bn_recalibration_epochs):
        for rows in _batches(step, task, number, settings):
            step.settle(rows)
        step.hardware.average(step.method.statistics())


def training_data(
    method: Method, task: Task, settings: TrainingConfig, hardware: Hardware
) -> tuple[Samples, CropAndFlip | None]:
    """What the method is trained on, on the device, and how it varies."""
    data = method.training_data(task).to(hardware.device)
    if settings.augment == "none":
        return data, None
    return replace(data, augmented=True), CropAndFlip(data)


def _batches(step: Step, task: Task, epoch: int, settings: TrainingConfig) -> tuple[Tensor, ...]:
    """The rows of each batch of an epoch, and its augmentation: both follow from the seed and the epoch alone.

    With batch norm, samples that do not fill a last batch wait for the next epoch: the statistics of a few samples are
    a poor guide, and the last step of a task would follow them.
    """
    seed = step.method.seed
    order = torch.randperm(len(step.data), generator=generator(seed, "shuffle", task.index, epoch))
    if step.augment is not None:
        step.augment.draw(generator(seed, "augment", task.index, epoch))
    batches: tuple[Tensor, ...] = order.to(step.hardware.device).split(settings.batch_size)
    short = step.method.statistics() and len(batches[-1]) < settings.batch_size
    return batches[:-1] if short and len(batches) > 1 else batches


def make_step(
    method: Method, data: Samples, optimizer: Optimizer, hardware: Hardware, augment: CropAndFlip | None = None
) -> Step:
    """The step in the form that suits the hardware and the method."""
    kind = RecordedStep if hardware.graphs and method.cuda_graph_safe else Step
    return kind(method, data, optimizer, hardware, augment)


def make_optimizer(method: Method, settings: TrainingConfig) -> Optimizer:
    """The optimiser. On a GPU a rate that changes lies there too, so that a recorded step sees it."""
    parameters, decay = method.parameters(), settings.weight_decay
    on_gpu, varies = any(parameter.is_cuda for parameter in parameters), settings.schedule != "constant"
    first = settings.learning_rate
    rate = torch.tensor(first, device=parameters[0].device) if on_gpu and varies else first
    if settings.optimizer == "adam":
        # On a GPU its step counter must not leave it.
        return torch.optim.Adam(parameters, rate, weight_decay=decay, capturable=on_gpu, fused=not on_gpu)
    fused = True if on_gpu and varies else None
    return torch.optim.SGD(parameters, rate, settings.momentum, weight_decay=decay, fused=fused)


def set_rate(optimizer: Optimizer, rate: float) -> None:
    """Go on with this step size."""
    for group in optimizer.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


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
