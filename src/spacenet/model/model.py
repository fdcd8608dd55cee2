"""A model: a network that has learned some tasks, and all that is needed to use it and to go on learning.

It takes raw inputs, as the user has them, and answers with the user's labels. The estimator, the commands and the
service are ways to talk to it.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spacenet.config.training import TrainingConfig
from spacenet.data.augmentation import check_images
from spacenet.data.preprocessing import Array, Normalization, NormalizationSpec
from spacenet.data.stream import Samples, Task
from spacenet.errors import DataError, SettingsError
from spacenet.methods import get_method
from spacenet.methods.shared.sparse import SparseMethod
from spacenet.methods.shared.sparse_settings import SparseSettings
from spacenet.config.model import NetConfig
from spacenet.nets import build_net
from spacenet.space.blueprint import CPU, Blueprint
from spacenet.training.hardware import find_hardware
from spacenet.training.loop import Epoch, learn_task

Label = bool | int | float | str


def method_to_use(name: str) -> type[SparseMethod]:
    """The method of a name, if models can be made with it."""
    kind = get_method(name)
    if not issubclass(kind, SparseMethod):
        raise SettingsError(f"method: {name} keeps no space; choose spacenet, spacenet-density or static-sparse")
    return kind


@dataclass(frozen=True)
class Recipe:
    """What a model is made with, and goes on with."""

    method: str
    seed: int
    net: NetConfig
    training: TrainingConfig
    options: SparseSettings
    input_shape: tuple[int, ...]

    def blueprint(self) -> Blueprint:
        return build_net(self.net, self.input_shape)

    def build(self, blueprint: Blueprint, device: torch.device = CPU) -> SparseMethod:
        """A method that has learned nothing."""
        return method_to_use(self.method)(blueprint, self.options, self.seed, device)


@dataclass
class Model:
    """A network with its labels. Output number i stands for the i-th label of all tasks, one after the other.

    A label that comes again in a later task has several outputs; its probability is their sum.
    """

    recipe: Recipe
    normalization_spec: NormalizationSpec = field(default_factory=NormalizationSpec)
    normalization: Normalization | None = None
    """Fitted on the first task."""
    tasks: list[tuple[Label, ...]] = field(default_factory=list)
    metrics: dict[str, Any] = field(default_factory=dict)
    """What was measured when a run ended, if the model comes from one."""
    method: SparseMethod = field(init=False)

    def __post_init__(self) -> None:
        blueprint = self.recipe.blueprint()
        if self.recipe.training.augment != "none":
            check_images(self.recipe.input_shape)
        self.method = self.recipe.build(blueprint)
        self.method.check_inputs(self.recipe.input_shape)

    @classmethod
    def of(
        cls,
        recipe: Recipe,
        method: SparseMethod,
        normalization: Normalization,
        tasks: Sequence[tuple[Any, ...]],
        metrics: dict[str, Any],
    ) -> "Model":
        """What a run has learned."""
        model = cls(recipe, NormalizationSpec(normalization.scale), normalization, list(tasks), metrics)
        model.method = _moved(method, recipe, CPU)
        return model

    @property
    def outputs(self) -> list[Label]:
        """The label of each output."""
        return [label for task in self.tasks for label in task]

    @property
    def classes(self) -> list[Label]:
        """The labels, in the order in which they came; with it stand the columns of `probabilities`."""
        return [label for _, label in dict.fromkeys((type(label), label) for label in self.outputs)]

    # Using it

    def scores(self, x: Array) -> Tensor:
        """One score for each output."""
        return self.method.predict_all(self._inputs(x))

    def probabilities(self, x: Array) -> Array:
        """One probability for each class, (n, classes), as 64-bit numbers: rounding must not make two of them equal."""
        each = self.scores(x).double().softmax(1)
        together = torch.zeros(len(each), len(self.classes), dtype=torch.float64)
        return np.asarray(together.index_add_(1, self.columns(), each).numpy())

    def columns(self) -> Tensor:
        """For each output, the number of its class."""
        place = {(type(label), label): number for number, label in enumerate(self.classes)}
        return torch.tensor([place[type(label), label] for label in self.outputs], dtype=torch.long)

    def _inputs(self, x: Array) -> Tensor:
        if self.normalization is None:
            raise DataError("the model has learned nothing yet")
        self.check_shape(x)
        return self.normalization(x)

    def check_shape(self, x: Array) -> None:
        """Raise `DataError` if these are not samples of the shape that the model knows."""
        expected = self.recipe.input_shape
        if tuple(x.shape[1:]) != expected:
            raise DataError(f"samples have the shape {tuple(x.shape[1:])}; the model takes {expected}")

    # Learning

    def learn(
        self,
        x: Array,
        y: Array,
        on_batch: Callable[[int, int], None] = lambda done, total: None,
        on_epoch: Callable[[Epoch], None] = lambda epoch: None,
    ) -> None:
        """Learn a task: raw inputs, and their labels. If it fails or is interrupted, the model is as it was."""
        self.check_shape(x)
        if self.method.needs_old_data and self.tasks:
            raise SettingsError(f"{self.recipe.method} learns on only with all old data, which a model does not hold")
        numbers = np.unique(y, return_inverse=True)
        labels: tuple[Label, ...] = tuple(numbers[0].tolist())
        normalization = self.normalization or Normalization.fit(x, self.normalization_spec)
        hardware = find_hardware(self.recipe.training)
        first = len(self.outputs)
        samples = Samples(normalization(x), torch.from_numpy(numbers[1].reshape(-1)).long() + first)
        task = Task(len(self.tasks), labels, range(first, first + len(labels)), _AtHand(samples))
        method = self.copied(hardware.device).method
        with _threads(self.recipe.training.threads):
            learn_task(
                method,
                task,
                self.recipe.training,
                hardware=hardware,
                on_batch=on_batch,
                on_epoch=lambda epoch, optimizer: on_epoch(epoch),
            )
        tasks = [*self.tasks, labels]
        self.method = _moved(method, self.recipe, CPU)
        self.tasks, self.normalization = tasks, normalization

    def copied(self, device: torch.device = CPU) -> "Model":
        """The same model once more, on a device."""
        copy = replace(self, tasks=list(self.tasks))
        copy.method = _moved(self.method, self.recipe, device)
        return copy

    # What it holds

    def space_left(self) -> int:
        """How many more tasks like the last one the free space holds, at most 100."""
        return self.method.space_left(len(self.tasks[-1]) if self.tasks else 2)


@dataclass(frozen=True)
class _AtHand:
    """Samples that are there already."""

    train: Samples

    def samples(self, task: Task, *, train: bool) -> Samples:
        assert train, "there are no test samples"
        return self.train


def _moved(method: SparseMethod, recipe: Recipe, device: torch.device) -> SparseMethod:
    copy = recipe.build(method.blueprint, device)
    copy.load_model(method.model())
    copy.tasks_learned, copy.classes = method.tasks_learned, list(method.classes)
    return copy


@contextmanager
def _threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
