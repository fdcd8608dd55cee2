"""What the pictures of a report need beyond metrics and model, kept in the run folder: no data is needed later."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from spacenet.data.stream import Samples, Task
from spacenet.experiments.metrics import accuracies
from spacenet.methods.base import Method, map_batches
from spacenet.methods.density.densities import ClassMemory
from spacenet.methods.density.statistics import count_floats
from spacenet.utils.files import load_tensors, save_tensors
from spacenet.utils.tensors import in_section, section

ANALYSIS = "analysis.safetensors"
SAMPLES_PER_CLASS = 50
CLASSES = 2
MANY_SAMPLES, SAMPLES_PER_TASK = 20_000, 2_000
"""Of more test samples than the first, at most the second of each task show what less memory would have given."""
MOST_STEPS = 8
"""So many numbers of directions are tried."""


@dataclass(frozen=True)
class Truncated:
    """What would have come of keeping fewer directions of each Gaussian that describes a class."""

    directions: int
    floats: int
    """For each class."""
    acc: float
    """Mean accuracy over all tasks in the end, in percent."""


@dataclass(frozen=True)
class Analysis:
    """What was kept of a run. What a method cannot tell is left out."""

    confusion: Tensor | None
    """(classes, classes): how many test samples of the first index's class were given the second's, in the end."""
    activations: Mapping[str, Tensor]
    """For each hidden layer (samples, units), after the first task, to test samples of two of its classes."""
    labels: tuple[str, ...]
    """The label of each of those samples."""
    kept: ClassMemory | None = None
    """What was kept of each class, of methods that describe classes."""
    truncate: tuple[Truncated, ...] = ()
    """What would have come of keeping less, from the fewest directions to all that were kept."""


def save_activations(folder: Path, method: Method, task: Task) -> None:
    """Note what the units answer to samples of two classes of the task that was learned first."""
    chosen = task.classes[:CLASSES]
    rows = torch.cat([(task.test.y == number).nonzero().flatten()[:SAMPLES_PER_CLASS] for number in chosen])
    found = method.activations(task.test.x[rows].to(method.device))
    labels = [str(task.labels[int(number) - task.classes.start]) for number in task.test.y[rows]]
    tensors = in_section("activations", {name: values.half() for name, values in found.items()})
    save_tensors(folder / ANALYSIS, tensors, {"labels": labels if tensors else []})


def save_confusion(folder: Path, method: Method, tasks: Sequence[Task]) -> None:
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


def keep_truncated(folder: Path, method: Method, tasks: Sequence[Task], input_shape: tuple[int, ...]) -> None:
    """Note what is kept of each class, and how well tasks would be known with less of it. Nothing is trained again."""
    kept = method.class_memory(input_shape) if tasks else None
    if kept is None:
        return
    tests = _some([task.test for task in tasks])
    x, classes = torch.cat([test.x for test in tests]), [task.classes for task in tasks]
    found = []
    for directions in ladder(kept.directions):
        right, _ = accuracies(map_batches(method.truncate(directions), x, method.device), tests, classes)
        floats = count_floats(kept.gaussians, directions, kept.dimensions)
        found.append(Truncated(directions, floats, sum(right) / len(right)))
    tensors, facts = _load(folder)
    noted = {"kept": asdict(kept), "thinner": [asdict(each) for each in found]}
    save_tensors(folder / ANALYSIS, tensors, {**facts, **noted})


def ladder(directions: int) -> list[int]:
    """None, 1, 2, 4, … and all of so many; where that makes too many steps, the smallest are left out."""
    powers = [2**exponent for exponent in range(directions.bit_length()) if 2**exponent < directions]
    return [0, *powers[-(MOST_STEPS - 2) :], directions]


def _some(tests: Sequence[Samples]) -> list[Samples]:
    """All test samples, or of very many some of each task, evenly spread over it."""
    if sum(map(len, tests)) <= MANY_SAMPLES:
        return list(tests)
    counts = [min(len(test), SAMPLES_PER_TASK) for test in tests]
    rows = [torch.arange(count) * len(test) // max(1, count) for test, count in zip(tests, counts, strict=True)]
    return [Samples(test.x[chosen], test.y[chosen]) for test, chosen in zip(tests, rows, strict=True)]


def load_analysis(folder: Path) -> Analysis:
    """What was kept of the run in a folder; nothing, if it is of a time before this was done."""
    tensors, facts = _load(folder)
    activations = {name: values.float() for name, values in section(tensors, "activations").items()}
    kept = ClassMemory(**facts["kept"]) if "kept" in facts else None
    truncate = tuple(Truncated(**each) for each in facts.get("thinner", ()))
    return Analysis(tensors.get("confusion"), activations, tuple(facts["labels"]), kept, truncate)


def _load(folder: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    path = folder / ANALYSIS
    return load_tensors(path) if path.is_file() else ({}, {"labels": []})
