"""The interface of a continual-learning method.

The training loop calls, for each task of a stream:

    training_data → begin_task → for each epoch: begin_epoch → for each batch: forward → loss → backward → step
                                                 → end_epoch → end_task

A method is a short file that declares its settings and overrides the hooks it needs. How the known ones fit in:

    a penalty (EWC, SI, MAS)    `loss` adds it, `end_task` measures the weights' importance
    a memory (iCaRL, ER)        `end_task` fills `self.memory`, `training_data` joins it; `predict` may be another rule
    a second network (DGR)      `parameters` and `loss` cover both; `forward` mixes in what the old generator dreams
    a growing network (DEN)     `epochs` asks for several phases, `end_epoch` adds units; the loop follows `parameters`
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import Optimizer

from spacenet.config.ranges import Between, Range
from spacenet.data.stream import Samples, Stream, Task
from spacenet.methods.density.densities import ClassMemory
from spacenet.methods.shared.memory import Memory
from spacenet.space.blueprint import CPU, Blueprint
from spacenet.space.predictor import Predictor

PREDICT_BATCH = 2048
ANY = "any"


@dataclass(frozen=True)
class MethodSettings:
    """Settings that only one method has. Each method declares its own."""


@dataclass(frozen=True)
class Batch:
    """A batch of training samples; `rows` says where they stand in the method's training data."""

    x: Tensor
    y: Tensor
    rows: Tensor

    @classmethod
    def pick(cls, data: Samples, rows: Tensor) -> "Batch":
        """These rows of the data. `index_select` takes a fifth of the time of `x[rows]`."""
        return cls.made(data.x.index_select(0, rows), data, rows)

    @classmethod
    def made(cls, x: Tensor, data: Samples, rows: Tensor) -> "Batch":
        """These rows of the data, with inputs made from theirs."""
        return cls(x, data.y.index_select(0, rows), rows)


@dataclass(frozen=True)
class LayerUsage:
    """What one layer (a layer of units) holds."""

    name: str
    units: int
    used: int
    reserved: int
    unused: int
    connections: int
    """Connections that lead into the layer."""


def map_batches(function: Callable[[Tensor], Tensor], x: Tensor, device: torch.device) -> Tensor:
    """What a function gives for any number of samples, in bounded memory; computed on the device, kept off it."""
    return torch.cat([function(part.to(device)).cpu() for part in x.split(PREDICT_BATCH)])


class Method(ABC):
    """One continual-learning method, learning one stream."""

    name: ClassVar[str]
    strategy: ClassVar[str]
    """Regularization, Rehearsal, Architectural or Bound, as in the paper's tables, or Statistical."""
    reference: ClassVar[str] = ""
    """Authors, title, where and when: the paper that the method comes from."""
    settings_from: ClassVar[str] = ""
    """Where its settings come from: published ones, or a search on held-out data."""
    Settings: ClassVar[type[MethodSettings]] = MethodSettings
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """For each stream, or for `ANY` of them, what differs from the stream's settings: {"training": …, "options": …}."""
    ranges: ClassVar[Mapping[str, Range]] = {"training.learning_rate": Between(0.001, 0.3, log=True)}
    """What a search may vary, as section.setting: training.learning_rate, options.strength, …"""
    cuda_graph_safe: ClassVar[bool] = True
    """Whether all steps of a task do the same with other numbers, so that a GPU can record one and replay it."""

    def __init__(self, blueprint: Blueprint, settings: MethodSettings, seed: int, device: torch.device = CPU) -> None:
        self.blueprint, self.settings, self.seed, self.device = blueprint, settings, seed, device
        self.memory = Memory()
        self.tasks_learned = 0
        self.classes: list[range] = []
        """The classes of each task learned, and of the one being learned. Kept by the loop."""

    # Before training

    def check(self, stream: Stream) -> list[str]:
        """Raise `SettingsError` if the settings cannot work on this stream; return warnings worth a line."""
        return []

    # Training one task

    def training_data(self, task: Task) -> Samples:
        """What the task is trained on: its own samples, and with them whatever the method remembers."""
        return self.memory.concat(task.train)

    @abstractmethod
    def begin_task(self, task: Task, data: Samples) -> None:
        """Make room for the task's classes. `data` is what `training_data` gave."""

    @abstractmethod
    def parameters(self) -> list[nn.Parameter]:
        """What the optimiser may change during this task."""

    def statistics(self) -> list[Tensor]:
        """What `forward` changes by itself (batch norm's means); processes that share a batch average it."""
        return []

    @abstractmethod
    def forward(self, batch: Batch) -> Tensor:
        """Scores for training: one column for each class that takes part, see `target`."""

    def target(self, batch: Batch) -> Tensor:
        """The column of the right class for each sample of the batch."""
        return batch.y

    def loss(self, output: Tensor, batch: Batch) -> Tensor:
        return F.cross_entropy(output, self.target(batch))

    def step(self, optimizer: Optimizer) -> None:
        """Change the parameters; gradients are in place."""
        optimizer.step()

    def epochs(self, planned: int) -> int:
        """How many epochs the task takes: more than planned where a method trains in several phases, and none where
        it trains nothing; then `end_task` follows `begin_task`."""
        return planned

    def begin_epoch(self, epoch: int) -> None:
        """Called before every epoch, also where a run goes on in the middle of a task."""

    def end_epoch(self, epoch: int, optimizer: Optimizer, *, last: bool) -> None:
        """Called after every epoch; `last` is the task's last one."""

    def epoch_notes(self) -> dict[str, float]:
        """Figures of its own that the method has to report of the epoch just ended."""
        return {}

    def end_task(self, task: Task) -> None:
        """Called when the task's training is over. From here on its data is gone, unless the method keeps it."""
        self.tasks_learned += 1

    # Using what was learned

    @abstractmethod
    def predict(self, x: Tensor) -> Tensor:
        """One score per sample and class seen so far; the largest wins. No task identity is given."""

    def predict_all(self, x: Tensor) -> Tensor:
        """`predict` for any number of samples, in bounded memory."""
        return map_batches(self.predict, x, self.device)

    def activations(self, x: Tensor) -> dict[str, Tensor]:
        """What the units of each hidden layer answer to samples, (n, units); none where there is no one network."""
        return {}

    @abstractmethod
    def layers(self) -> list[LayerUsage]:
        """What each layer holds now."""

    # Being saved

    @abstractmethod
    def network(self) -> dict[str, Tensor]:
        """The network, by name: what is needed to predict, if the task is known where the method needs that."""

    def extra(self) -> dict[str, Tensor]:
        """What the method keeps besides the network: importance of weights, an old copy, a generator, masks, …"""
        return {}

    def model(self) -> dict[str, Tensor]:
        """All that is kept between tasks, besides the memory of old samples."""
        return {**self.network(), **self.extra()}

    def check_extra(self, extra: Mapping[str, Tensor], input_shape: tuple[int, ...]) -> None:
        """Raise `ValueError` if `extra` could not have given this, for the network that the method has already."""
        if extra:
            raise ValueError(f"unknown content ({', '.join(sorted(extra)[:3])})")

    @abstractmethod
    def load_model(self, tensors: Mapping[str, Tensor]) -> None:
        """Take back what `model` gave."""

    def task_state(self) -> dict[str, Tensor]:
        """What is needed, besides the model, to go on in the middle of a task."""
        return {}

    @abstractmethod
    def resume_task(self, task: Task, data: Samples, tensors: Mapping[str, Tensor]) -> None:
        """Go on in the middle of a task: like `begin_task`, with what `task_state` gave."""

    # Being measured

    def class_memory(self, input_shape: tuple[int, ...]) -> ClassMemory | None:
        """What is kept of each class besides the network, of methods that describe classes."""
        return None

    def truncate(self, directions: int) -> Predictor:
        """What would predict if only so many directions of each Gaussian had been kept, of such methods."""
        raise NotImplementedError(f"{self.name} describes no classes")

    def parameters_kept(self) -> int:
        """How many trained numbers the network has in the end."""
        return sum(tensor.numel() for tensor in self.network().values() if tensor.is_floating_point())

    def bytes_kept(self) -> int:
        """Measured size of everything kept from one task to the next."""
        return sum(tensor.nbytes for tensor in self.network().values()) + self.extra_bytes()

    def extra_bytes(self) -> int:
        """Measured size of what is kept from one task to the next besides the network."""
        return sum(tensor.nbytes for tensor in self.extra().values()) + self.memory.nbytes
