"""The base of methods that train a dense network on the first task and freeze it."""

from typing import ClassVar

from spacenet.methods.base import Task, Uniform
from spacenet.methods.shared.dense import DenseMethod


class FrozenFeatures(DenseMethod):
    """Later tasks are not trained; what they add is computed in `end_task` from the frozen features. With only one task
    that is trained, there are no outputs of other tasks that its loss could be computed over."""

    strategy = "Statistical"
    training_space: ClassVar = DenseMethod.training_space | {"training.epochs": Uniform(1, 40, integer=True)}

    def epochs(self, planned: int) -> int:
        return 0 if self.tasks_learned else planned

    def saved_sizes(self) -> dict[str, int]:
        first = len(self.classes[0]) if self.classes else 0
        return super().saved_sizes() | {self.blueprint.output.name: first}

    def new_outputs(self, task: Task) -> int:
        return 0 if self.tasks_learned else len(task.classes)
