"""CWR+'s output layer: each task trains weights of its own from zero, which then join those of the tasks before."""

from collections.abc import Mapping

import torch
from torch import Tensor

from spacenet.data.stream import Samples, Task
from spacenet.methods.base import Batch
from spacenet.methods.shared.masked import Masked


class ConsolidatedOutputs(Masked):
    """Rows of the output layer: those of the task being learned are the paper's tw, all others its cw, frozen."""

    def begin_task(self, task: Task, data: Samples) -> None:
        super().begin_task(task, data)
        with torch.no_grad():
            for name in self.output_names():
                self.values[name][task.classes.start :] = 0.0
        self.freeze(self.free_numbers(task))

    def resume_task(self, task: Task, data: Samples, tensors: Mapping[str, Tensor]) -> None:
        self.freeze(self.free_numbers(task))

    def free_numbers(self, task: Task) -> dict[str, Tensor]:
        """What the task may change: masks by name, where not all of a value is free."""
        return self.free_outputs()

    def forward(self, batch: Batch) -> Tensor:
        """The scores of the task's own classes: others do not take part in its training."""
        return super().forward(batch)[:, self.classes[-1].start :]

    def target(self, batch: Batch) -> Tensor:
        return batch.y - self.classes[-1].start

    def end_task(self, task: Task) -> None:
        super().end_task(task)
        with torch.no_grad():
            for name in self.output_names():
                mean_shift(self.values[name][task.classes.start :])


def mean_shift(weights: Tensor) -> None:
    """cw = tw − avg(tw), in place: tasks whose weights grew differently become comparable."""
    weights -= weights.mean()
