"""The base of methods that train no network: they describe classes on a fixed representation."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn

from spacenet.methods.base import Batch, LayerUsage, Method, MethodSettings, Stream, Task, map_batches
from spacenet.methods.shared.class_statistics import FIXED, resolve_representation
from spacenet.space.blueprint import Params


@dataclass(frozen=True)
class UntrainedSettings(MethodSettings):
    """What classes are described on."""

    representation: Literal["auto", "inputs", "edges"] = "auto"
    """What classes are described on: the inputs, or the edges of images; auto is edges where inputs are images."""


class UntrainedMethod(Method):
    """Needs no epochs: a class is described once, when its task ends. The network is not used."""

    strategy = "Statistical"
    settings: UntrainedSettings

    def setup(self) -> None:
        super().setup()
        self._params: dict[str, Tensor] | None = None

    @abstractmethod
    def add_classes(self, h: Tensor, y: Tensor, task: Task) -> None:
        """Add the task's classes, given the representation (n, d) and the classes y of its samples."""

    @abstractmethod
    def compute_params(self) -> dict[str, Tensor]:
        """What `scores` computes with."""

    @abstractmethod
    def scores(self, params: Params, h: Tensor) -> Tensor:
        """One score per class seen so far, from the representation (n, d)."""

    def check(self, stream: Stream) -> list[str]:
        resolve_representation(self.settings.representation, stream.input_shape)
        return super().check(stream)

    def epochs(self, planned: int) -> int:
        return 0

    def parameters(self) -> list[nn.Parameter]:
        return []

    def forward(self, batch: Batch) -> Tensor:
        return self.predict(batch.x)

    def end_task(self, task: Task) -> None:
        self.add_classes(map_batches(self.represent, task.train.x, self.device), task.train.y.cpu(), task)
        self.invalidate()
        super().end_task(task)

    def predict(self, x: Tensor) -> Tensor:
        if self._params is None:
            self._params = {name: tensor.to(self.device) for name, tensor in self.compute_params().items()}
        return self.scores(self._params, self.represent(x))

    def represent(self, x: Tensor) -> Tensor:
        """The representation of samples that classes are described on, (n, d)."""
        return FIXED[resolve_representation(self.settings.representation, tuple(x.shape[1:]))](x)

    def layer_usage(self) -> list[LayerUsage]:
        return []

    def invalidate(self) -> None:
        self._params = None
