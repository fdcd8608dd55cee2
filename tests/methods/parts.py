"""Learning one task of a stream after another, and asking one task's model alone."""

from collections.abc import Callable

import torch
from torch import Tensor

from spacenet.config.training import TrainingConfig
from spacenet.data.stream import Task
from spacenet.methods.shared.task_models import PerTaskBatchNorm, TaskModels
from spacenet.training.loop import learn_task
from tests.methods.support import TRAINING, copy_state, learn
from tests.nets.test_convolutions import images


def learn_one(method: TaskModels, task: Task, training: TrainingConfig = TRAINING) -> None:
    learn_task(method, task, training, on_batch=lambda done, total: None, on_epoch=lambda epoch, optimizer: None)


def answers(method: TaskModels, x: Tensor, task: int) -> Tensor:
    """The scores that the task's own model gives."""
    with torch.no_grad():
        return method.scores(x, task)


def right(method: TaskModels, task: Task) -> float:
    """How often the task's own model is right on its test samples, from 0 to 1."""
    hits = answers(method, task.test.x, task.index).argmax(1) == task.test.y - task.classes.start
    return float(hits.float().mean())


def check_norms_of_their_own(make: Callable[[], PerTaskBatchNorm], training: TrainingConfig) -> None:
    """Batch norm of a task learned stays what it was, is another than the next task's, and comes back from a file."""
    method, stream = make(), images(2)
    learn(method, stream[:1], training)
    norms = {key: norm.clone() for key, norm in method.norms[0].items()}
    before = answers(method, stream[0].test.x, 0)
    learn_one(method, stream[1], training)
    again = make()
    again.load_state(copy_state(method))
    assert torch.equal(again.predict(stream[0].test.x), method.predict(stream[0].test.x))
    assert len(norms) == 5 * 4
    assert all(torch.equal(method.norms[0][key], norm) for key, norm in norms.items())
    assert all(not torch.equal(method.norms[1][key], norm) for key, norm in norms.items())
    assert torch.equal(answers(method, stream[0].test.x, 0), before)
