"""The interface of a continual-learning method.

The training loop calls, for each task of a stream:

    training_data → begin_task → for each epoch: begin_epoch → for each batch: forward → loss → backward → step
                                                 → end_epoch → end_task

A method is a short file that declares its settings and overrides the hooks it needs. How the known ones fit in:

    a penalty (EWC, SI, MAS)    `loss` adds it, `end_task` measures the weights' importance
    a memory (iCaRL, ER)        `end_task` fills `self.memory`, `training_data` adds it; `predict` may be another rule
    a second network (DGR)      `named_parameters` and `loss` cover both; `forward` adds what the old generator produces
    a growing network (DEN)     `epochs` asks for several phases, `end_epoch` adds units; the loop follows them
"""

import copy
import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from inspect import get_annotations
from itertools import accumulate, pairwise
from types import NoneType
from typing import Any, ClassVar, Self, get_args

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from spacenet.config.model import MethodSettings
from spacenet.config.ranges import Choice, Range, Uniform
from spacenet.config.settings import field_types
from spacenet.data.stream import Samples, Stream, Task
from spacenet.methods.abilities import Abilities
from spacenet.methods.density.densities import ClassMemory
from spacenet.methods.kept import Keeper, kept
from spacenet.methods.shared.memory import Memory
from spacenet.methods.shared.places import PLACES, Places
from spacenet.space.blueprint import CPU, Blueprint, Params
from spacenet.space.pack import Pack
from spacenet.utils.optimizers import Optimizer
from spacenet.utils.seeding import generator
from spacenet.utils.tensors import check_finite

__all__ = ["Batch", "LayerUsage", "Method", "MethodSettings", "kept", "map_batches"]
__all__ += ["Choice", "Optimizer", "Params", "Samples", "Stream", "Task", "Uniform"]  # what most methods need

PREDICT_BATCH = 2048
NETWORK, PROGRESS, TASK = "network/", "progress/", "task/"
"""Prefixes of the names in a state: what predicts, how many tasks were learned, what only the current task needs. All
other names are what the method keeps besides the network."""


@dataclass(frozen=True)
class Batch:
    """A batch of training samples; `rows` are their indices in the method's training data."""

    x: Tensor
    y: Tensor
    rows: Tensor
    weight: Tensor | None = None
    """Of each sample, 1 on average over the task; None if all count the same."""
    saved: dict[str, Tensor] = field(default_factory=dict)
    """What `forward` leaves for `loss`. It ends with the batch: a method that kept it would keep the whole graph of
    the step, and with it the GPU stream of that step."""

    @classmethod
    def pick(cls, data: Samples, rows: Tensor) -> "Batch":
        """These rows of the data. `index_select` takes a fifth of the time of `x[rows]`."""
        weight = None if data.weight is None else data.weight.index_select(0, rows)
        return cls(data.x.index_select(0, rows), data.y.index_select(0, rows), rows, weight)


@dataclass(frozen=True)
class LayerUsage:
    """How much of one layer is in use."""

    name: str
    units: int
    used: int
    reserved: int
    unused: int
    connections: int
    """Connections that lead into the layer."""


@torch.no_grad()
def map_batches(function: Callable[[Tensor], Tensor], x: Tensor, device: torch.device) -> Tensor:
    """Apply a function to any number of samples in bounded memory: computed on the device, returned on the CPU."""
    return torch.cat([function(part.to(device)).cpu() for part in x.split(PREDICT_BATCH)])


class Method(Keeper, Abilities, ABC):
    """A continual-learning method, learning one stream of tasks.

    A subclass sets `name` and `strategy`, declares its settings, and overrides the hooks it needs. What it creates once
    belongs in `setup`; what it keeps from task to task is declared with `kept`. What it computes from that is a
    `cached_property`, see `invalidate`.
    """

    name: ClassVar[str]
    strategy: ClassVar[str]
    """Regularization, Rehearsal, Architectural or Bound, as in the paper's tables, or Statistical."""
    reference: ClassVar[str] = ""
    """Authors, title, venue and year of the paper that the method comes from."""
    settings_from: ClassVar[str] = ""
    """Where its default settings come from: published ones, or a search on held-out data."""
    Settings: ClassVar[type[Any]] = MethodSettings
    """Follows from the declared type of the attribute `settings`, if a subclass declares that."""
    training_space: ClassVar[dict[str, Range]] = {"training.learning_rate": Uniform(0.001, 0.3, log=True)}
    """What a search may vary of the settings of training, as training.setting."""
    search_space: ClassVar[dict[str, Range]] = training_space
    """All that a search may vary: by default the training space, and the method's settings with a declared range."""
    cuda_graph_safe: ClassVar[bool] = True
    """Whether all steps of a task launch the same kernels, so that a CUDA graph of one can be replayed."""

    places: Places = kept(PLACES, Places, on_cpu=True)
    """Of classes, where some were removed since the last task was learned."""

    def __init__(
        self, blueprint: Blueprint, settings: MethodSettings, seed: int = 0, device: torch.device = CPU
    ) -> None:
        self.settings, self.seed, self.device, self.design = settings, seed, device, blueprint
        self.blueprint = self.suit_network(blueprint, settings)
        self.memory = Memory()
        self.tasks_learned = 0
        self.classes: list[range] = []
        """The classes of each task learned, and of the one being learned."""
        self.initialize_kept()
        self.setup()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        declared = get_annotations(cls).get("settings")
        if isinstance(declared, str):  # from __future__ import annotations
            declared = vars(sys.modules[cls.__module__]).get(declared)
        if "Settings" not in vars(cls) and isinstance(declared, type):
            cls.Settings = declared
        if "search_space" not in vars(cls) and (declared or vars(cls).keys() & {"Settings", "training_space"}):
            hints = {f"method.{name}": _declarations(hint) for name, hint in field_types(cls.Settings).items()}
            ranges = {name: each for name, hint in hints.items() for each in hint if isinstance(each, Range)}
            cls.search_space = cls.training_space | ranges

    @classmethod
    def suit_network(cls, blueprint: Blueprint, settings: Any) -> Blueprint:
        """The network that the method trains, if it is another one than the one that is configured."""
        return blueprint

    @classmethod
    def count_new_numbers(cls, blueprint: Blueprint, settings: Any) -> int:
        """How many numbers a new method creates for the network that it trains."""
        return 0

    def setup(self) -> None:
        """Create what the method needs. Called once, at the end of the constructor."""

    def rng(self, purpose: str, *numbers: int) -> Generator:
        """Random numbers that the seed, their purpose and these numbers (task, epoch, …) determine."""
        return generator(self.seed, purpose, *numbers)

    @property
    def in_task(self) -> bool:
        """Whether a task is being learned: it has begun and not ended."""
        return len(self.classes) > self.tasks_learned

    # Before training

    def check(self, stream: Stream) -> list[str]:
        """Raise `SettingsError` if the settings cannot work on this stream; return warnings worth a line."""
        return []

    # Training one task

    def training_data(self, task: Task) -> Samples:
        """What the task is trained on: its own samples, and with them whatever the method remembers."""
        return self.memory.concat(task.train)

    def without_places(self) -> Self:
        """The same with matrices of the size that its classes need; scores may differ in their last digits."""
        if not self.places:
            return self
        found = copy.copy(self)
        found.places = Places()
        found.invalidate()
        return found

    def begin_task(self, task: Task, data: Samples) -> None:
        """Make room for the task's classes. `data` is what `training_data` returned."""
        self.places = Places()
        self.classes.append(task.classes)

    @abstractmethod
    def named_parameters(self) -> dict[str, nn.Parameter]:
        """What the optimizer may change during this task. A checkpoint holds the optimizer's state by these names, so a
        task that is resumed must give the same parameters the same names, in any order."""

    def parameters(self) -> list[nn.Parameter]:
        """The same without names."""
        return list(self.named_parameters().values())

    def statistics(self) -> list[Tensor]:
        """What `forward` updates itself (running statistics of batch norm); processes that share a batch average it."""
        return []

    @abstractmethod
    def forward(self, batch: Batch) -> Tensor:
        """Logits for training: one column for each class that takes part, see `target`."""

    def target(self, batch: Batch) -> Tensor:
        """The column of the right class for each sample of the batch."""
        return batch.y

    def loss(self, output: Tensor, batch: Batch) -> Tensor:
        return F.cross_entropy(output, self.target(batch))

    def backward(self, loss: Tensor) -> None:
        """Compute the gradients of the parameters."""
        loss.backward()

    def step(self, optimizer: Optimizer) -> None:
        """Update the parameters; gradients are in place."""
        optimizer.step()

    def epochs(self, planned: int) -> int:
        """How many epochs the task takes: more than planned where a method trains in several phases, and none where
        it trains nothing; then `end_task` follows `begin_task`."""
        return planned

    def rate_factor(self, task: Task) -> float:
        """What the learning rate of SGD is multiplied by in a task."""
        return 1.0

    def begin_epoch(self, epoch: int) -> None:
        """Called before every epoch, also where a run resumes in the middle of a task."""

    def end_epoch(self, epoch: int, optimizer: Optimizer, *, last: bool) -> None:
        """Called after every epoch; `last` is the task's last one."""

    def epoch_metrics(self) -> dict[str, float]:
        """Figures of its own that the method reports for the epoch that just ended."""
        return {}

    def end_task(self, task: Task) -> None:
        """Called when the task's training is over. After this its data is gone, unless the method keeps it."""
        self.tasks_learned += 1
        self.initialize_kept(TASK)
        self.invalidate()

    # Using what was learned

    @abstractmethod
    def predict(self, x: Tensor) -> Tensor:
        """One score per sample and class seen so far; the largest wins. No task identity is given."""

    def predict_all(self, x: Tensor) -> Tensor:
        """`predict` for any number of samples, in bounded memory."""
        return map_batches(self.predict, x, self.device)

    def logits(self, scores: Tensor) -> Tensor:
        """Scores of any number of samples in a form of which softmax makes probabilities."""
        return scores

    def activations(self, x: Tensor) -> dict[str, Tensor]:
        """The activations of each hidden layer, (n, units); empty where there is no single network."""
        return {}

    @abstractmethod
    def layer_usage(self) -> list[LayerUsage]:
        """How much of each layer is in use."""

    # Saving and loading

    def state(self) -> dict[str, Tensor]:
        """Everything the method keeps, by name; in the middle of a task also what that task needs.

        Names of the network's tensors begin with `network/`, those that only the current task needs with `task/`. A
        subclass declares its own with `kept`, or adds them to `super().state()` and takes them back in `load_state`.
        Kept samples are not in it.
        """
        counts = [len(classes) for classes in self.classes]
        state = {
            PROGRESS + "classes": torch.tensor(counts, dtype=torch.int32),
            PROGRESS + "tasks": torch.tensor(self.tasks_learned, dtype=torch.int32),
        }
        state |= self.kept_tensors(without=None if self.in_task else TASK)
        return {name: tensor.detach() for name, tensor in state.items()}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Restore what `state` returned."""
        self.set_progress(state[PROGRESS + "classes"].tolist(), int(state[PROGRESS + "tasks"]))
        self.load_kept(state, self.tasks_learned)
        self.invalidate()

    def set_progress(self, counts: Sequence[int], tasks: int) -> None:
        """Note how many classes each task has, and how many tasks are learned."""
        self.classes = [range(start, stop) for start, stop in pairwise(accumulate(counts, initial=0))]
        self.tasks_learned = tasks

    def invalidate(self) -> None:
        """Discard every `cached_property`, because the state that it was computed from has changed."""
        cached = [name for name in vars(self) if isinstance(getattr(type(self), name, None), cached_property)]
        for name in cached:
            del vars(self)[name]

    def resume_task(self, task: Task, data: Samples) -> None:
        """Continue in the middle of a task, after `load_state`: recreate what depends on the data."""

    def network_state(self) -> dict[str, Tensor]:
        """The part of the state that predicts."""
        return {name.removeprefix(NETWORK): t for name, t in self.state().items() if name.startswith(NETWORK)}

    def extra_state(self) -> dict[str, Tensor]:
        """What is kept from task to task besides the network: importance of weights, an old copy, masks, …"""
        return {name: t for name, t in self.state().items() if not name.startswith((NETWORK, PROGRESS, TASK))}

    def check_state(self, state: Mapping[str, Tensor], input_shape: tuple[int, ...]) -> None:
        """Raise `ValueError` if this cannot be what a method keeps that has learned the tasks in `classes`: names and
        types, shapes, possible values. What it is given comes from a file, and is not trusted.

        A subclass checks what it keeps itself, see `take_tensors`, and leaves the rest to its base. What is left here
        must be declared with `kept` by a class that checks nothing: then all finite numbers are possible.
        """
        unknown = sorted(name for name in state if not f"{name}/".startswith(self.unchecked_names()))
        if unknown:
            raise ValueError(f"unknown content ({', '.join(unknown[:3])})")
        check_finite(state, dict.fromkeys(state, -math.inf), f"what {self.name} keeps")

    def check_inputs(self, shape: tuple[int, ...]) -> None:
        """Raise `SettingsError` if the settings cannot work on samples of this shape; what depends on it is set up."""

    def packed_sizes(self) -> dict[str, int]:
        """How many units of each hidden layer `predictor` has."""
        return {layer.name: layer.used for layer in self.layer_usage()[:-1]}

    # Measuring what is kept

    def class_memory(self, input_shape: tuple[int, ...]) -> ClassMemory | None:
        """What is kept of each class besides the network, for methods that keep class statistics."""
        return None

    def truncate(self, directions: int) -> Pack:
        """The predictor with only the first directions of each Gaussian, for methods that keep class statistics."""
        raise NotImplementedError(f"{self.name} keeps no class statistics")

    def typicality(self, x: Tensor) -> Tensor:
        """For any number of samples, about the fraction of their class's own samples that are less typical of it,
        (n,)."""
        return map_batches(self.detector, x, self.device)

    def class_typicality(self, x: Tensor) -> Tensor:
        """The same of every class, (n, classes)."""
        return self.typicality(x)

    def predict_truncated(self, x: Tensor, steps: Sequence[int]) -> list[Tensor]:
        """The scores of any number of samples for each of these numbers of directions."""
        return [map_batches(self.truncate(directions), x, self.device) for directions in steps]

    def parameters_kept(self) -> int:
        """How many trained numbers the network has in the end."""
        return sum(tensor.numel() for tensor in self.network_state().values() if tensor.is_floating_point())

    def bytes_to_predict(self) -> int:
        """Size of the numbers that a prediction is computed from."""
        return sum(tensor.nbytes for tensor in self.network_state().values())

    def bytes_kept(self) -> int:
        """Size of everything kept from one task to the next."""
        return sum(tensor.nbytes for tensor in self.network_state().values()) + self.extra_bytes()

    def extra_bytes(self) -> int:
        """Size of what is kept from one task to the next besides the network."""
        return sum(tensor.nbytes for tensor in self.extra_state().values()) + self.memory.nbytes


def _declarations(hint: Any) -> tuple[Any, ...]:
    """What a type is annotated with, also where it may be None instead."""
    within = get_args(hint)
    return within if NoneType not in within else tuple(each for part in within for each in get_args(part))
