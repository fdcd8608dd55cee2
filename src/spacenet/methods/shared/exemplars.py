"""What methods share that keep a fixed number of old samples, evenly divided between the classes seen."""

from abc import abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from spacenet.data.stream import Stream, Task
from spacenet.errors import SettingsError
from spacenet.methods.base import MethodSettings
from spacenet.methods.shared.dense import DenseMethod


@dataclass(frozen=True)
class ExemplarSettings(MethodSettings):
    """How many old samples are kept."""

    memory_size: int = 2000
    """Samples of earlier tasks that are kept in all, the same number for every class seen."""

    def __post_init__(self) -> None:
        if self.memory_size < 1:
            raise SettingsError(f"memory-size: {self.memory_size} is not a number of samples (need 1 or more)")


class ExemplarMethod(DenseMethod):
    """A dense network beside a memory of fixed size: each new class takes its share from those that have one."""

    Settings = ExemplarSettings
    settings: ExemplarSettings

    def check(self, stream: Stream) -> list[str]:
        if self.settings.memory_size < len(stream.labels):
            size, classes = self.settings.memory_size, len(stream.labels)
            raise SettingsError(f"memory-size: {size} samples cannot be shared by the stream's {classes} classes")
        return []

    @abstractmethod
    def choose(self, x: Tensor, count: int, number: int) -> Tensor:
        """Which samples of class `number` to keep, the dearest first: old classes lose their last ones."""

    def end_task(self, task: Task) -> None:
        share = self.settings.memory_size // task.classes.stop
        self.memory.trim(share)
        rows = [(task.train.y == number).nonzero().flatten() for number in task.classes]
        chosen = [own[self.choose(task.train.x[own], share, n)] for own, n in zip(rows, task.classes, strict=True)]
        self.memory.keep(task, torch.cat(chosen))
        super().end_task(task)
