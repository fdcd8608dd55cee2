"""The tasks of a stream: their samples, and how the classes of a data set are split into them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from spacenet.config.stream import StreamConfig
from spacenet.data.dataset import Dataset
from spacenet.data.preprocessing import Array
from spacenet.errors import DataError, SettingsError
from spacenet.registry import unknown

TaskLabels = tuple[tuple[object, ...], ...]
"""For each task the labels of its classes."""


@dataclass(frozen=True)
class Samples:
    """Inputs, normalized, and their class numbers."""

    x: Tensor
    y: Tensor
    augmented: bool = False
    """Whether inputs change from epoch to epoch; otherwise what depends on them alone can be computed once."""
    value_bytes: int = 4
    """What storing one value takes: a pixel of an image is a byte before it is normalized."""
    weight: Tensor | None = None
    """Of each sample, above 0; None if all count the same."""

    def to(self, device: torch.device) -> "Samples":
        weight = None if self.weight is None else self.weight.to(device)
        return replace(self, x=self.x.to(device), y=self.y.to(device), weight=weight)

    def take(self, rows: Tensor) -> "Samples":
        """These rows, in their order."""
        return replace(self, x=self.x[rows], y=self.y[rows], weight=None if self.weight is None else self.weight[rows])

    def __len__(self) -> int:
        return len(self.y)


class SampleSource(Protocol):
    """Where the samples of a task come from: a stream, or anything else with this method."""

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


def split_classes(labels: Sequence[object], config: StreamConfig, classes_per_task: int) -> TaskLabels:
    """Split classes into tasks as the configuration says, by default `classes_per_task` in each.

    A shuffled order is the one that other code gets by numpy.random.seed(SEED) and numpy.random.permutation(COUNT).
    """
    if config.tasks is not None:
        by_name = {str(label): label for label in labels}
        named = [[name.strip() for name in task.split(",")] for task in config.tasks.split("/")]
        return tuple(tuple(by_name.get(name, name) for name in task) for task in named)
    order = list(labels)
    if config.shuffle_classes is not None:
        permutation = np.random.RandomState(config.shuffle_classes).permutation(len(order))
        order = [order[place] for place in permutation]
    size = config.classes_per_task or classes_per_task
    first = config.first_classes or size
    return (tuple(order[:first]), *(tuple(order[i : i + size]) for i in range(first, len(order), size)))


def split_own_classes(labels: Sequence[object], config: StreamConfig) -> TaskLabels:
    """The tasks of data of one's own for a model: all classes in one, unless the configuration cuts them."""
    tasks = split_classes(labels, config, len(labels))
    check_labels(labels, tasks)
    return tasks


def rows_of(y: Array, labels: Sequence[object]) -> Array:
    """Where samples with these labels are."""
    return np.flatnonzero(np.isin(y, np.array(labels, dtype=y.dtype)))


def format_tasks(tasks: Sequence[Sequence[object]]) -> str:
    """The labels of each task as one string, as a configuration has them: "0,1/2,3"."""
    for label in (label for task in tasks for label in task):
        if any(mark in str(label) for mark in ",/"):
            raise SettingsError(f"the label {label!r} has a comma or a slash, which separate labels", setting="tasks")
    return "/".join(",".join(map(str, task)) for task in tasks)


def check_labels(known: Sequence[object], tasks: TaskLabels) -> None:
    """Raise `SettingsError` unless the classes of the tasks are known ones, each in one task."""
    labels = [label for task in tasks for label in task]
    if not tasks or not all(tasks):
        raise SettingsError("every task needs at least one class", setting="tasks")
    for label in labels:
        if label not in known:
            raise unknown("class", str(label), list(map(str, known)), setting="tasks")
        if labels.count(label) > 1:
            raise SettingsError(f"class {label} is in more than one task", setting="tasks")


def check_tasks(dataset: Dataset, tasks: TaskLabels) -> None:
    """Raise `SettingsError` or `DataError` if the data set cannot be split into these tasks."""
    check_labels(dataset.labels, tasks)
    labels = [label for task in tasks for label in task]
    untested = set(labels) - set(np.unique(dataset.y_test).tolist())
    if untested:
        raise DataError(f"{dataset.name}: class {min(map(str, untested))} has no test samples")
