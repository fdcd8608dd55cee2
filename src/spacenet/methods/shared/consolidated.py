"""CWR+'s output layer: each task trains output weights of its own from zero, which are then added to the old ones."""

import torch
from torch import Tensor

from spacenet.data.stream import Samples, Task
from spacenet.methods.base import Batch
from spacenet.methods.shared.masked import Masked


class ConsolidatedOutputs(Masked):
    """Rows of the output layer: those of the current task are the paper's tw, all others its cw, which are frozen."""

    def begin_task(self, task: Task, data: Samples) -> None:
        super().begin_task(task, data)
        with torch.no_grad():
            for name in self.output_names():
                self.params[name][task.classes.start :] = 0.0
        self.freeze_except(self.trainable_masks(task))

    def resume_task(self, task: Task, data: Samples) -> None:
        super().resume_task(task, data)
        self.freeze_except(self.trainable_masks(task))

    def trainable_masks(self, task: Task) -> dict[str, Tensor]:
        """Masks for `freeze_except`: what the task may change."""
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
