"""Training steps outside of a run: what the training loop does for each batch, one call at a time, and timing it."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from statistics import median

import torch

from spacenet.config.run import RunConfig
from spacenet.data.stream import Stream
from spacenet.data.task import Task
from spacenet.methods.base import Method
from spacenet.methods.naive import Naive
from spacenet.methods.shared.sparse import AdaptiveMethod
from spacenet.methods.spacenet import SpaceNet
from spacenet.nets import build_net
from spacenet.space.blueprint import CPU
from spacenet.training.hardware import Hardware
from spacenet.training.loop import make_optimizer, make_step, training_data
from spacenet.utils.seeding import generator

REPEATS = 9
WARM_UP = 3
STEPS_PER_TASK = 20
"""Steps of each task that is committed only to fill the ledger."""


class Stepper:
    """A task that has begun. Each call is one training step; every form of a method gets the same batches."""

    def __init__(self, method: Method, task: Task, config: RunConfig, hardware: Hardware | None = None) -> None:
        self.method, self.hardware = method, hardware or Hardware()
        self.data, augment = training_data(method, task, config.model.training, self.hardware)
        method.begin_task(task, self.data)
        self.optimizer = make_optimizer(method, config.model.training)
        self.step = make_step(method, self.data, self.optimizer, self.hardware, augment)
        order = torch.randperm(len(self.data), generator=generator(method.seed, "shuffle", task.index, 0))
        batches = order.to(self.hardware.device).split(config.model.training.batch_size)
        # Without the last batch, which may be smaller and would make steps unequal.
        self._rows = cycle(batches[:-1] or batches)

    def __call__(self) -> None:
        self.step(next(self._rows))


def new_method(kind: type[Method], config: RunConfig, stream: Stream, device: torch.device = CPU) -> Method:
    """A method of this kind that has learned nothing, for the config's network."""
    model = config.model
    settings = model.method_settings.for_tasks(len(stream))
    return kind(build_net(model.net, stream.input_shape), settings, model.seed, device)


def after_tasks(
    config: RunConfig,
    stream: Stream,
    tasks: Sequence[Task],
    hardware: Hardware | None = None,
    kind: type[AdaptiveMethod] = SpaceNet,
) -> AdaptiveMethod:
    """A method that has committed these tasks after a few steps and a rewiring each: room is taken as in a run."""
    method = new_method(kind, config, stream, (hardware or Hardware()).device)
    assert isinstance(method, AdaptiveMethod)
    for task in tasks:
        stepper = Stepper(method, task, config, hardware)
        for last in (False, True):
            for _ in range(STEPS_PER_TASK // 2):
                stepper()
            method.end_epoch(0, stepper.optimizer, last=last)
        method.end_task(task)
    return method


def dense_stepper(
    config: RunConfig, stream: Stream, tasks: Sequence[Task], hardware: Hardware | None = None
) -> Stepper:
    """The plain network with as many outputs as it has by the last task; what it learned does not matter here."""
    method = new_method(Naive, config, stream, (hardware or Hardware()).device)
    for task in tasks[:-1]:
        method.begin_task(task, method.training_data(task))
        method.end_task(task)
    return Stepper(method, tasks[-1], config, hardware)


@dataclass(frozen=True)
class Timing:
    """Milliseconds of one call: the median over the repeats, and the extremes."""

    ms: float
    least: float
    most: float


def alternate(calls: Mapping[str, Callable[[], object]], seconds_per_cell: float) -> dict[str, Timing]:
    """Time calls against each other: in turns, so that what disturbs the machine for a while disturbs all alike."""
    counts = {}
    for name, call in calls.items():
        for _ in range(WARM_UP):
            call()
        counts[name] = max(1, int(seconds_per_cell / REPEATS / _seconds(call, WARM_UP)))
    spent: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(REPEATS):
        for name, call in calls.items():
            spent[name].append(1000 * _seconds(call, counts[name]))
    return {name: Timing(median(each), min(each), max(each)) for name, each in spent.items()}


def _seconds(call: Callable[[], object], count: int) -> float:
    """Seconds of one call, measured over `count` of them."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(count):
        call()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return (time.perf_counter() - began) / count
