"""What the pictures of a report need beyond metrics and model, kept in the run folder: no data is needed later."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from spacenet.methods.base import Method
from spacenet.streams.stream import Task
from spacenet.training.checkpoint import load_tensors, save_tensors

ANALYSIS = "analysis.safetensors"
SAMPLES_PER_CLASS = 50
CLASSES = 2


@dataclass(frozen=True)
class Analysis:
    """What was kept of a run. What a method cannot tell is left out."""

    confusion: Tensor | None
    """(classes, classes): how many test samples of the first index's class were given the second's, in the end."""
    activations: Mapping[str, Tensor]
    """For each hidden layer (samples, units), after the first task, to test samples of two of its classes."""
    labels: tuple[str, ...]
    """The label of each of those samples."""


def keep_activations(folder: Path, method: Method, task: Task) -> None:
    """Note what the units answer to samples of two classes of the task that was learned first."""
    chosen = task.classes[:CLASSES]
    rows = torch.cat([(task.test.y == number).nonzero().flatten()[:SAMPLES_PER_CLASS] for number in chosen])
    found = method.activations(task.test.x[rows].to(method.device))
    labels = [str(task.labels[int(number) - task.classes.start]) for number in task.test.y[rows]]
    tensors = {f"activations/{name}": values.half() for name, values in found.items()}
    save_tensors(folder / ANALYSIS, tensors, {"labels": labels if tensors else []})


def keep_confusion(folder: Path, method: Method, tasks: Sequence[Task]) -> None:
    """Note which class is taken for which after the last task."""
    tensors, facts = _load(folder)
    classes = sum(len(task.classes) for task in tasks)
    if classes:
        counts = torch.zeros(classes * classes, dtype=torch.int32)
        for task in tasks:
            place = task.test.y * classes + method.predict_all(task.test.x).argmax(1)
            counts += place.bincount(minlength=len(counts)).int()
        tensors["confusion"] = counts.view(classes, classes)
    save_tensors(folder / ANALYSIS, tensors, facts)


def load_analysis(folder: Path) -> Analysis:
    """What was kept of the run in a folder; nothing, if it is of a time before this was done."""
    tensors, facts = _load(folder)
    activations = {
        name.removeprefix("activations/"): values.float()
        for name, values in tensors.items()
        if name.startswith("activations/")
    }
    return Analysis(tensors.get("confusion"), activations, tuple(facts["labels"]))


def _load(folder: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    path = folder / ANALYSIS
    return load_tensors(path) if path.is_file() else ({}, {"labels": []})
