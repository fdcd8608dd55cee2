"""How the classes of a data set are split into tasks."""

import random
from collections.abc import Sequence

import numpy as np

from spacenet.config.stream import StreamConfig
from spacenet.data.dataset import Dataset
from spacenet.errors import DataError, SettingsError
from spacenet.registry import unknown

TaskLabels = tuple[tuple[object, ...], ...]
"""For each task the labels of its classes."""


def split_classes(dataset: Dataset, config: StreamConfig, classes_per_task: int) -> TaskLabels:
    """Split the classes of a data set into tasks as the configuration says, by default `classes_per_task` in each."""
    if config.tasks is not None:
        by_name = {str(label): label for label in dataset.labels}
        named = [[name.strip() for name in task.split(",")] for task in config.tasks.split("/")]
        return tuple(tuple(by_name.get(name, name) for name in task) for task in named)
    order = list(dataset.labels)
    if config.shuffle_classes is not None:
        random.Random(config.shuffle_classes).shuffle(order)
    size = config.classes_per_task or classes_per_task
    return tuple(tuple(order[i : i + size]) for i in range(0, len(order), size))


def format_tasks(tasks: Sequence[Sequence[object]]) -> str:
    """The labels of each task as one string, as a configuration has them: "0,1/2,3"."""
    for label in (label for task in tasks for label in task):
        if any(mark in str(label) for mark in ",/"):
            raise SettingsError(f"the label {label!r} has a comma or a slash, which separate labels", setting="tasks")
    return "/".join(",".join(map(str, task)) for task in tasks)


def check_tasks(dataset: Dataset, tasks: TaskLabels) -> None:
    """Raise `SettingsError` or `DataError` if the data set cannot be split into these tasks."""
    known, labels = dataset.labels, [label for task in tasks for label in task]
    if not tasks or not all(tasks):
        raise SettingsError("every task needs at least one class", setting="tasks")
    for label in labels:
        if label not in known:
            raise unknown("class", str(label), list(map(str, known)), setting="tasks")
        if labels.count(label) > 1:
            raise SettingsError(f"class {label} is in more than one task", setting="tasks")
    untested = set(labels) - set(np.unique(dataset.y_test).tolist())
    if untested:
        raise DataError(f"{dataset.name}: class {min(map(str, untested))} has no test samples")
