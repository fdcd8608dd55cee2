"""All data at once: the upper bound."""

from spacenet.methods.base import Samples, Task
from spacenet.methods.shared.dense import DenseMethod


class Joint(DenseMethod):
    """Trains a new network for each task, on all data seen so far."""

    name = "joint"
    strategy = "Bound"

    def begin_task(self, task: Task, data: Samples) -> None:
        self.build()
        super().begin_task(task, data)

    @property
    def needs_old_data(self) -> bool:
        return True

    def new_outputs(self, task: Task) -> int:
        return task.classes.stop

    def end_task(self, task: Task) -> None:
        super().end_task(task)
        self.memory.keep(task)
