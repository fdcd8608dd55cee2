"""The base of methods that keep a fixed number of old samples, evenly divided between the classes seen."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated

import torch
from annotated_types import Ge
from torch import Tensor

from spacenet.errors import SettingsError
from spacenet.methods.base import MethodSettings, Samples, Stream, Task
from spacenet.methods.shared.dense import DenseMethod


@dataclass(frozen=True)
class ExemplarSettings(MethodSettings):
    """How many old samples are kept."""

    memory_size: Annotated[int, Ge(1)] = 2000
    """Samples of earlier tasks that are kept in total, the same number for every class seen."""


class ExemplarMethod(DenseMethod):
    """A dense network and a memory of fixed size: with every new class, the other classes' shares become smaller."""

    Settings = ExemplarSettings
    settings: ExemplarSettings

    def check(self, stream: Stream) -> list[str]:
        self._check_memory(len(stream.labels))
        return super().check(stream)

    def begin_task(self, task: Task, data: Samples) -> None:
        self._check_memory(task.classes.stop)
        super().begin_task(task, data)

    def _check_memory(self, classes: int) -> None:
        if (size := self.settings.memory_size) < classes:
            raise SettingsError(f"{size} samples cannot be shared by {classes} classes", setting="memory_size")

    @abstractmethod
    def choose(self, x: Tensor, count: int, number: int) -> Tensor:
        """Which samples of class `number` to keep, the most important first: the last ones are dropped later."""

    def end_task(self, task: Task) -> None:
        share = self.settings.memory_size // task.classes.stop
        self.memory.trim(share)
        rows = [(task.train.y == number).nonzero().flatten() for number in task.classes]
        chosen = [own[self.choose(task.train.x[own], share, n)] for own, n in zip(rows, task.classes, strict=True)]
        self.memory.keep(task, torch.cat(chosen))
        super().end_task(task)
