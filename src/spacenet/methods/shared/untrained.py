"""What methods share that have no network: they describe classes on what everybody sees from the start."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from spacenet.data.stream import Samples, Stream, Task
from spacenet.methods.base import ANY, Batch, LayerUsage, Method, MethodSettings, map_batches
from spacenet.methods.shared.class_statistics import FIXED, fixed_kind
from spacenet.space.blueprint import CPU, Blueprint


@dataclass(frozen=True)
class UntrainedSettings(MethodSettings):
    """What classes are described on."""

    representation: Literal["auto", "inputs", "edges"] = "auto"
    """What classes are described on: inputs as they are, or edges of images; auto takes edges where inputs are
    images."""


class UntrainedMethod(Method):
    """Asks for no epochs: a class is described when its task ends, once and for all. The network stays unused."""

    strategy = "Statistical"
    settings: UntrainedSettings
    presets: ClassVar = {ANY: {"data": {"centering": 0.0}}}  # edges are seen best in images as they are

    def __init__(self, blueprint: Blueprint, settings: MethodSettings, seed: int, device: torch.device = CPU) -> None:
        super().__init__(blueprint, settings, seed, device)
        self._values: dict[str, Tensor] | None = None

    @abstractmethod
    def enter(self, h: Tensor, y: Tensor, task: Task) -> None:
        """Take in the task's classes: the representation (n, d) of its samples, of the classes y."""

    @abstractmethod
    def values(self) -> dict[str, Tensor]:
        """What `scores` computes with."""

    @abstractmethod
    def scores(self, values: Mapping[str, Tensor], h: Tensor) -> Tensor:
        """One score for each class seen so far, from the representation (n, d)."""

    def check(self, stream: Stream) -> list[str]:
        fixed_kind(self.settings.representation, stream.input_shape)
        return []

    def epochs(self, planned: int) -> int:
        return 0

    def begin_task(self, task: Task, data: Samples) -> None:
        """There is nothing to make room for."""

    def parameters(self) -> list[nn.Parameter]:
        return []

    def forward(self, batch: Batch) -> Tensor:
        return self.predict(batch.x)

    def end_task(self, task: Task) -> None:
        self.enter(map_batches(self._represent, task.train.x, self.device), task.train.y.cpu(), task)
        self._values = None
        super().end_task(task)

    def predict(self, x: Tensor) -> Tensor:
        if self._values is None:
            self._values = {name: value.to(self.device) for name, value in self.values().items()}
        return self.scores(self._values, self._represent(x))

    def _represent(self, x: Tensor) -> Tensor:
        return FIXED[fixed_kind(self.settings.representation, tuple(x.shape[1:]))](x)

    def layers(self) -> list[LayerUsage]:
        return []

    def load_model(self, tensors: Mapping[str, Tensor]) -> None:
        self._values = None

    def resume_task(self, task: Task, data: Samples, tensors: Mapping[str, Tensor]) -> None:
        """A task without epochs has no middle."""
