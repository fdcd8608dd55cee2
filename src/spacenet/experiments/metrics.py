"""What a run measures: the accuracy matrix, the metrics computed from it, and what a method keeps.

`Scores` says how each metric is computed; `spacenet.experiments.metric_names` has their names and short descriptions.
Accuracies are percentages. A `Record` is kept in a run's checkpoints and turned into metrics.json.
"""

import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import dacite
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from spacenet import __version__
from spacenet.config.run import RunConfig
from spacenet.data.stream import Samples
from spacenet.methods.base import LayerUsage, Method

Row = list[float | None]
Matrix = list[Row]
"""R: row j holds the accuracy on every task i after learning task j; tasks still to come are included. None where it
was not measured; the accuracy on a task right after learning it, and the last row, always are."""
KEPT = ("parameters", "bytes_kept", "extra_bytes", "images_kept", "units_added", "layers")
"""What a method keeps in the end: the last task's figures."""


@dataclass(frozen=True)
class Scores:
    """The figures of one run (or of the first tasks of one that stopped early)."""

    acc: float
    """ACC: mean accuracy over the tasks learned, after the last of them (equation 7)."""
    last_acc: float
    """Last accuracy: that over all test samples of the classes learned, after the last task. It is ACC where all tasks
    have as many test samples; in a stream with a large first task it is what papers report."""
    aia: float
    """AIA, average incremental accuracy: the mean over all tasks, the first included, of the accuracy over all test
    samples of the classes seen by then (Rebuffi et al., iCaRL, 2017).

    Left out are tasks after which not all earlier ones were tested (`evaluate_every`)."""
    bwt: float
    """BWT: mean change of each earlier task's accuracy since it was learned (equation 7)."""
    forgetting: float
    """Mean drop of each earlier task from the best accuracy it had before the last task (Chaudhry et al., 2018)."""
    fwt: float
    """Forward transfer: mean accuracy on a task just before learning it, above that of the untrained network.

    Where outputs appear with their task, as in all class-incremental methods here, it is 0: a class that has not been
    seen cannot be predicted."""
    learning_accuracy: float
    """Mean accuracy on each task right after learning it."""


def scores(matrix: Matrix, untrained: list[float], samples: Sequence[int] = ()) -> Scores:
    """Compute the figures. `untrained` is the accuracy on each task before anything was learned, `samples` the number
    of its test samples; without it, all have as many."""
    count = len(matrix)
    measured = np.array([row[:count] for row in matrix], float)  # None becomes NaN
    last, first = measured[-1], measured.diagonal()
    best = np.fmax.reduce(np.where(np.tri(count, dtype=bool), measured, np.nan)[:-1]) if count > 1 else last[:0]
    return Scores(
        acc=_mean(last),
        last_acc=accuracy_so_far(matrix[-1], samples or [1] * count) or 0.0,
        aia=average_incremental_accuracy(matrix, samples),
        bwt=_mean(last[:-1] - first[:-1]),
        forgetting=_mean(best[:-1] - last[:-1]),
        fwt=_mean(measured.diagonal(1) - np.array(untrained[1:count])),
        learning_accuracy=_mean(first),
    )


def average_incremental_accuracy(matrix: Matrix, samples: Sequence[int] = ()) -> float:
    """The mean of `accuracies_so_far`, where they are known."""
    return _mean(np.array([accuracy for accuracy in accuracies_so_far(matrix, samples) if accuracy is not None]))


def accuracies_so_far(matrix: Matrix, samples: Sequence[int] = ()) -> Row:
    """The accuracy over the test samples of all tasks learned so far, after each task; None where not all of them were
    measured. Without the numbers of `samples`, all tasks have as many."""
    counts = samples or [1] * len(matrix)
    return [accuracy_so_far(row, counts[:number]) for number, row in enumerate(matrix, 1)]


def accuracy_so_far(row: Row, samples: Sequence[int]) -> float | None:
    """The accuracy over all samples of the first tasks, of which these are the numbers; None where one was not
    measured."""
    right = [accuracy * count for accuracy, count in zip(row, samples, strict=False) if accuracy is not None]
    return sum(right) / sum(samples) if len(right) == len(samples) else None


def mean_so_far(row: Row, learned: int) -> float | None:
    """The mean accuracy over the tasks learned; None where not all were measured."""
    measured = [value for value in row[:learned] if value is not None]
    return sum(measured) / learned if len(measured) == learned else None


def accuracies(output: Tensor, tests: Sequence[Samples], classes: Sequence[range]) -> tuple[list[float], list[float]]:
    """Accuracy on each task: among all classes seen (class-incremental), and among the task's own (task-incremental).

    `output` has one row per sample of all `tests` and one column per class seen. A task not yet seen scores 0.
    """
    lengths = torch.tensor([len(test) for test in tests])
    seen = torch.tensor([own.stop <= output.shape[1] for own in classes])
    if not bool(seen.any()):
        return _percentages(torch.zeros(int(lengths.sum())), lengths), [0.0] * len(tests)
    truth, of_task = torch.cat([test.y for test in tests]), torch.arange(len(tests)).repeat_interleave(lengths)
    class_il = _percentages(output.argmax(1) == truth, lengths)
    # The columns of each sample's own task, one after the other; the first one in place of those that it does not have.
    counts = torch.tensor([len(own) for own in classes]) * seen
    starts = torch.tensor([own.start for own in classes]) * seen
    column = torch.arange(int(counts.max()))
    beyond = (column >= counts[:, None])[of_task]
    columns = starts[of_task, None] + column.masked_fill(beyond, 0)
    own_output = output.gather(1, columns).masked_fill_(beyond, -torch.inf)
    right = (own_output.argmax(1) + starts[of_task] == truth) & seen[of_task]
    return class_il, _percentages(right, lengths)


def _percentages(right: Tensor, lengths: Tensor) -> list[float]:
    """The percentage of right answers in each of several successive parts; 0 for an empty one."""
    totals = F.pad(right.to(torch.int64).cumsum(0), (1, 0))
    ends = lengths.cumsum(0)
    return ((totals[ends] - totals[ends - lengths]) / lengths.clamp(min=1).double() * 100.0).tolist()


def _mean(values: NDArray[np.float64]) -> float:
    return sum(values.tolist()) / len(values) if len(values) else 0.0


def _to_tensor(matrix: Matrix) -> Tensor:
    """The part of a matrix for the tasks learned; NaN stands for None."""
    return torch.tensor(
        [[math.nan if x is None else x for x in row[: len(matrix)]] for row in matrix], dtype=torch.float64
    )


def _to_rows(values: Tensor, tasks: int) -> Matrix:
    """The matrix again, with the tasks to come."""
    to_come: Row = [0.0] * (tasks - len(values))
    return [[None if math.isnan(x) else x for x in row] + to_come for row in values.tolist()]


@dataclass
class TaskRecord:
    """One learned task. Accuracies are percentages."""

    index: int
    labels: list[str]
    test_samples: int
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
    _plain: list[dict[str, Any]] = field(default_factory=list, repr=False, compare=False)
    """The tasks but the last as mappings, which no longer change."""

    def to_state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """What a checkpoint holds of it: numbers and facts. Matrices are numbers: as text they would take most of the
        time of a run over many tasks."""
        self._plain += [asdict(task) for task in self.tasks[len(self._plain) : -1]]
        tasks = [*self._plain, *(asdict(task) for task in self.tasks[-1:])]
        facts = {"untrained": self.untrained, "tasks": tasks, "warnings": self.warnings}
        return {"matrix": _to_tensor(self.matrix), "task_il": _to_tensor(self.task_il_matrix)}, facts

    @classmethod
    def from_state(cls, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> "Record":
        """Restore what `to_state` returned."""
        count = len(facts["untrained"])
        matrices = {"matrix": _to_rows(tensors["matrix"], count), "task_il_matrix": _to_rows(tensors["task_il"], count)}
        return dacite.from_dict(cls, {**facts, **matrices}, dacite.Config(check_types=False))

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
            metrics |= asdict(scores(self.matrix, self.untrained, [task.test_samples for task in done]))
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
