"""A stream: a data set cut into tasks that come one after another.

stream = make_stream("split-digits", StreamConfig())
len(stream), stream[0].classes, stream[1:3], [len(task.train) for task in stream]
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, overload

import numpy as np
import torch
from torch import Tensor

from spacenet.data.dataset import Dataset
from spacenet.data.preprocessing import Normalization, NormalizationSpec
from spacenet.errors import DataError, SettingsError
from spacenet.option_types import OptionalInt, OptionalPath, OptionalText

Cut = tuple[tuple[object, ...], ...]
"""For each task the labels of its classes."""


@dataclass(frozen=True)
class StreamConfig:
    """What the stream is made from and how it is cut."""

    npz: OptionalPath = None
    """Your own data: an .npz file with x_train, y_train, x_test and y_test."""
    classes_per_task: OptionalInt = None
    """Cut into tasks of this many classes (the last one may get fewer)."""
    tasks: OptionalText = None
    """Cut into exactly these tasks, e.g. 0,1/2,3,4/5 (classes that are not named are left out)."""
    shuffle_classes: OptionalInt = None
    """Shuffle the order of the classes with this seed before cutting."""
    centering: float = 0.5
    """What is subtracted from inputs: 0 one constant, 1 the first task's mean of each feature, between: a mixture."""
    validation: float = 0.0
    """Evaluate on this part of the training data, held out, instead of on the test set (for choosing settings)."""
    data_dir: OptionalPath = None
    """Look for data sets here first (default: the environment variable SPACENET_DATA)."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.validation < 1.0:
            raise SettingsError(f"validation: {self.validation} is not a part of the data (need 0 ≤ validation < 1)")
        if not 0.0 <= self.centering <= 1.0:
            raise SettingsError(f"centering: {self.centering} is out of range (need 0 to 1)")
        if self.classes_per_task is not None and self.classes_per_task < 1:
            raise SettingsError(
                f"classes-per-task: {self.classes_per_task} is not a number of classes (need 1 or more)"
            )
        if self.tasks is not None and (self.classes_per_task is not None or self.shuffle_classes is not None):
            raise SettingsError("tasks: names the tasks exactly; leave out classes-per-task and shuffle-classes")


@dataclass(frozen=True)
class Samples:
    """Inputs, normalised, and their class numbers."""

    x: Tensor
    y: Tensor
    fixed: bool = True
    """Whether an input looks the same in every epoch, so that what depends on it alone can be computed once."""

    def to(self, device: torch.device) -> "Samples":
        return Samples(self.x.to(device), self.y.to(device), self.fixed)

    def __len__(self) -> int:
        return len(self.y)


class SampleSource(Protocol):
    """Where a task's samples come from: a stream, or whoever has them at hand."""

    def samples(self, task: "Task", *, train: bool) -> Samples: ...


@dataclass(frozen=True)
class Task:
    """One task. Class numbers count up over the stream in the order in which classes appear: 0, 1 | 2, 3 | …"""

    index: int
    labels: tuple[object, ...]
    classes: range
    source: SampleSource

    @cached_property
    def train(self) -> Samples:
        return self.source.samples(self, train=True)

    @cached_property
    def test(self) -> Samples:
        return self.source.samples(self, train=False)


class Stream(Sequence[Task]):
    """A sequence of tasks: index it, slice it, take its length. Samples are made when a task is asked for them."""

    def __init__(self, name: str, dataset: Dataset, cut: Cut, centering: float = 0.0) -> None:
        self.name, self.dataset, self.cut, self.centering = name, dataset, cut, centering
        self.labels = tuple(label for task in cut for label in task)
        self._check()

    def _check(self) -> None:
        known = set(self.dataset.labels)
        if not self.cut or not all(self.cut):
            raise SettingsError(f"{self.name}: every task needs at least one class")
        if len(set(self.labels)) < len(self.labels):
            twice = next(label for label in self.labels if self.labels.count(label) > 1)
            raise SettingsError(f"{self.name}: class {twice} is in more than one task; a class is learned once")
        if not known.issuperset(self.labels):
            missing = next(label for label in self.labels if label not in known)
            raise SettingsError(
                f"{self.name}: no class {missing}; there are {', '.join(map(str, self.dataset.labels))}"
            )
        untested = set(self.labels) - set(np.unique(self.dataset.y_test).tolist())
        if untested:
            raise DataError(
                f"{self.name}: class {min(map(str, untested))} has no test samples, so it cannot be measured"
            )

    def __len__(self) -> int:
        return len(self.cut)

    @overload
    def __getitem__(self, index: int) -> Task: ...
    @overload
    def __getitem__(self, index: slice) -> "Stream": ...
    def __getitem__(self, index: int | slice) -> "Task | Stream":
        if isinstance(index, slice):
            return Stream(self.name, self.dataset, self.cut[index], self.centering)
        index = range(len(self))[index]
        first = sum(len(labels) for labels in self.cut[:index])
        labels = self.cut[index]
        return Task(index, labels, range(first, first + len(labels)), self)

    @property
    def input_shape(self) -> tuple[int, ...]:
        return tuple(self.dataset.x_train.shape[1:])

    def samples(self, task: Task, *, train: bool) -> Samples:
        """A task's samples, normalised."""
        x, y = (self.dataset.x_train, self.dataset.y_train) if train else (self.dataset.x_test, self.dataset.y_test)
        rows = np.flatnonzero(np.isin(y, np.array(task.labels, dtype=y.dtype)))
        numbers = dict(zip(task.labels, task.classes, strict=True))
        classes = torch.tensor([numbers[label] for label in y[rows].tolist()], dtype=torch.long)
        return Samples(self.normalization(x[rows]), classes)

    @cached_property
    def normalization(self) -> Normalization:
        """What is done to the inputs of all tasks."""
        data, y = self.dataset, self.dataset.y_train
        first = data.x_train[np.isin(y, np.array(self.cut[0], dtype=y.dtype))]
        return Normalization.fit(first, NormalizationSpec(data.scale, data.mean, data.std, self.centering))


def cut_classes(dataset: Dataset, settings: StreamConfig, classes_per_task: int) -> Cut:
    """Cut a data set's classes into tasks, as the settings say or by `classes_per_task` where they are silent."""
    if settings.tasks is not None:
        by_name = {str(label): label for label in dataset.labels}
        named = [[name.strip() for name in task.split(",")] for task in settings.tasks.split("/")]
        return tuple(tuple(by_name.get(name, name) for name in task) for task in named)
    order = list(dataset.labels)
    if settings.shuffle_classes is not None:
        random.Random(settings.shuffle_classes).shuffle(order)
    size = settings.classes_per_task or classes_per_task
    return tuple(tuple(order[i : i + size]) for i in range(0, len(order), size))
