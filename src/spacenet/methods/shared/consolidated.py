"""CWR+'s output layer: each task trains output weights of its own from zero, which are then added to the old ones."""

import torch
from torch import Tensor

from spacenet.methods.base import Batch, Task
from spacenet.methods.shared.masked import Masked


class ConsolidatedOutputs(Masked):
    """Rows of the output layer: those of the current task are the paper's tw, all others its cw, which are frozen."""

    def add_outputs(self, count: int) -> None:
        super().add_outputs(count)
        with torch.no_grad():
            for name in self.output_names():
                self.params[name][-count:] = 0.0

    def trainable_masks(self) -> dict[str, Tensor]:
        return self.task_output_masks()

    def forward(self, batch: Batch) -> Tensor:
        """The scores of the task's own classes: others do not take part in its training."""
        return super().forward(batch)[:, self.classes[-1].start :]

    def target(self, batch: Batch) -> Tensor:
        return batch.y - self.classes[-1].start

    def end_task(self, task: Task) -> None:
        super().end_task(task)
        with torch.no_grad():
            for name in self.output_names():
                subtract_mean(self.params[name][task.classes.start :])


def subtract_mean(weights: Tensor) -> None:
    """cw = tw − avg(tw), in place: makes tasks comparable whose weights grew to different sizes."""
    weights -= weights.mean()
