"""Learning one task of a stream after another, and asking one task's model alone."""

import torch
from torch import Tensor

from spacenet.methods.shared.task_models import TaskModels
from spacenet.streams.stream import Task
from spacenet.training.loop import learn_task
from spacenet.training.settings import TrainingSettings
from tests.methods.support import TRAINING


def learn_one(method: TaskModels, task: Task, training: TrainingSettings = TRAINING) -> None:
    learn_task(method, task, training, on_batch=lambda done, total: None, on_epoch=lambda epoch, optimizer: None)


def answers(method: TaskModels, x: Tensor, task: int) -> Tensor:
    """The scores that the task's own model gives."""
    with torch.no_grad():
        return method.scores(x, task)


def right(method: TaskModels, task: Task) -> float:
    """How often the task's own model is right on its test samples, from 0 to 1."""
    hits = answers(method, task.test.x, task.index).argmax(1) == task.test.y - task.classes.start
    return float(hits.float().mean())
