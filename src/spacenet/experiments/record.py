"""What a run has measured so far: kept in its checkpoints, and turned into metrics.json."""

import platform
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch

from spacenet import __version__
from spacenet.config.run import RunConfig
from spacenet.experiments.metrics import Matrix, scores
from spacenet.methods.base import LayerUsage, Method

KEPT = ("parameters", "bytes_kept", "extra_bytes", "images_kept", "units_added", "layers")
"""What a method keeps in the end: the last task's figures."""


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
