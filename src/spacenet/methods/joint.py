"""All data at once: the upper bound."""

from spacenet.data.stream import Samples, Task
from spacenet.methods.shared.dense import DenseMethod


class Joint(DenseMethod):
    """For each task a new network is trained on everything seen so far."""

    name = "joint"
    strategy = "Bound"

    def begin_task(self, task: Task, data: Samples) -> None:
        self.build()
        self.add_outputs(task.classes.stop)

    def end_task(self, task: Task) -> None:
        super().end_task(task)
        self.memory.keep(task)
