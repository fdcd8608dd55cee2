"""What a run measures: the accuracy matrix, the figures computed from it, and what a method keeps.

Accuracies are percentages. A `Record` is kept in a run's checkpoints and turned into metrics.json.
"""

import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spacenet import __version__
from spacenet.config.run import RunConfig
from spacenet.data.stream import Samples
from spacenet.methods.base import LayerUsage, Method

Matrix = list[list[float]]
"""R: row j holds the accuracy on every task i after learning task j; tasks still to come are included."""
KEPT = ("parameters", "bytes_kept", "extra_bytes", "images_kept", "units_added", "layers")
"""What a method keeps in the end: the last task's figures."""


@dataclass(frozen=True)
class Scores:
    """The figures of one run (or of the first tasks of one that stopped early)."""

    acc: float
    """ACC: mean accuracy over the tasks learned, after the last of them (equation 7)."""
    bwt: float
    """BWT: mean change of each earlier task's accuracy since it was learned (equation 7)."""
    forgetting: float
    """Mean drop of each earlier task from the best accuracy it ever had."""
    fwt: float
    """Forward transfer: mean accuracy on a task just before learning it, above that of the untrained network.

    Where outputs appear with their task, as in all class-incremental methods here, it is 0: a class that has not been
    seen cannot be predicted."""
    learning_accuracy: float
    """Mean accuracy on each task right after learning it."""


def scores(matrix: Matrix, untrained: list[float]) -> Scores:
    """Compute the figures. `untrained` is the accuracy on each task before anything was learned."""
    learned = range(len(matrix))
    last, earlier = matrix[-1], learned[:-1]
    return Scores(
        acc=_mean([last[i] for i in learned]),
        bwt=_mean([last[i] - matrix[i][i] for i in earlier]),
        forgetting=_mean([max(matrix[j][i] for j in range(i, len(matrix) - 1)) - last[i] for i in earlier]),
        fwt=_mean([matrix[i - 1][i] - untrained[i] for i in learned[1:]]),
        learning_accuracy=_mean([matrix[i][i] for i in learned]),
    )


def accuracies(output: Tensor, tests: Sequence[Samples], classes: Sequence[range]) -> tuple[list[float], list[float]]:
    """Accuracy on each task: among all classes seen (class-incremental), and among the task's own (task-incremental).

    `output` has one row per sample of all `tests` and one column per class seen. A task not yet seen scores 0.
    """
    class_il, task_il = [], []
    for part, test, own in zip(output.split([len(test) for test in tests]), tests, classes, strict=True):
        seen = own.stop <= output.shape[1]
        class_il.append(_percent(part.argmax(1), test.y) if output.shape[1] else 0.0)
        task_il.append(_percent(part[:, own.start : own.stop].argmax(1) + own.start, test.y) if seen else 0.0)
    return class_il, task_il


def _percent(predicted: Tensor, truth: Tensor) -> float:
    return 100.0 * float((predicted == truth).to(torch.float64).mean()) if len(truth) else 0.0


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


@dataclass
class TaskRecord:
    """One learned task. Accuracies are percentages."""

    index: int
    labels: list[str]
    seconds: float = 0.0
    training_seconds: float = 0.0
    """Of these, the seconds of training itself, without evaluation and saving."""
    epochs: list[dict[str, float]] = field(default_factory=list)
    accuracy: float = 0.0
    layers: list[LayerUsage] = field(default_factory=list)
    bytes_kept: int = 0
    extra_bytes: int = 0
    images_kept: int = 0
    parameters: int = 0
    units_added: int = 0
    """Hidden units beyond those that the network started with."""

    def measure(self, method: Method) -> None:
        """Fill in what the method keeps now that the task is learned."""
        self.layers = method.layer_usage()
        self.bytes_kept, self.extra_bytes = method.bytes_kept(), method.extra_bytes()
        self.images_kept, self.parameters = len(method.memory), method.parameters_kept()
        planned = {layer.name: layer.size for layer in method.blueprint.hidden}
        self.units_added = sum(usage.units - planned.get(usage.name, usage.units) for usage in self.layers)


@dataclass
class Record:
    """The accuracy matrices, one row per learned task, and the tasks, the last of which may be unfinished."""

    untrained: list[float] = field(default_factory=list)
    matrix: Matrix = field(default_factory=list)
    task_il_matrix: Matrix = field(default_factory=list)
    tasks: list[TaskRecord] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def metrics(self, config: RunConfig, hardware: str, stopped: str | None = None) -> dict[str, Any]:
        """The content of metrics.json."""
        done = self.tasks[: len(self.matrix)]
        metrics: dict[str, Any] = {
            "stream": config.stream.name,
            "method": config.model.method,
            "seed": config.model.seed,
            "net": config.model.net.name,
            "evaluated_on": "held-out training data" if config.stream.validation else "test set",
            "tasks_learned": len(done),
            "stopped": stopped,
            "warnings": self.warnings,
            "seconds": sum(task.seconds for task in self.tasks),
            "training_seconds": sum(task.training_seconds for task in self.tasks),
            "hardware": hardware,
        }
        if done:
            task_il, tasks = scores(self.task_il_matrix, self.untrained), [asdict(task) for task in done]
            metrics |= asdict(scores(self.matrix, self.untrained))
            metrics |= {
                "matrix": self.matrix,
                "task_il_acc": task_il.acc,
                "task_il_bwt": task_il.bwt,
                "task_il_matrix": self.task_il_matrix,
                "connections": sum(usage.connections for usage in done[-1].layers),
                **{name: tasks[-1][name] for name in KEPT},
                "tasks": tasks,
            }
        metrics["versions"] = {
            "spacenet": __version__,
            "torch": torch.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        }
        return metrics
