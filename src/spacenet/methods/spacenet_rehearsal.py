"""SpaceNet-Rehearsal: the paper's hybrid that replays the data of all earlier tasks, or samples generated like it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from annotated_types import Ge, Le
from torch import Tensor

from spacenet.methods.base import Samples, Task, kept
from spacenet.methods.density.densities import Densities
from spacenet.methods.shared.class_statistics import SEED
from spacenet.methods.shared.sparse import AdaptiveMethod
from spacenet.methods.shared.sparse_settings import AdaptiveSettings
from spacenet.utils.tensors import check_finite, check_shapes, section

BOUNDS = "the bounds of inputs"


@dataclass(frozen=True)
class RehearsalSettings(AdaptiveSettings):
    """How much of the network a task may use, how many of its connections are rewired, and what is replayed."""

    replay: Literal["samples", "statistics"] = "samples"
    """What is replayed of old tasks: all their samples, or new ones drawn from statistics of each class, so that no
    samples are kept."""
    replay_components: Annotated[int, Ge(1), Le(1000)] = 10
    """Gaussians per class."""
    replay_directions: Annotated[int, Ge(1), Le(10_000)] = 20
    """Directions per Gaussian in which its variance is kept."""


class SpaceNetRehearsal(AdaptiveMethod):
    """SpaceNet with replay of old data or of generated samples; old classifiers stay connected and frozen."""

    name = "spacenet-rehearsal"
    strategy = "Rehearsal"
    settings: RehearsalSettings
    densities: Densities = kept("density", on_cpu=True)
    low: Tensor = kept("low", Tensor, on_cpu=True)
    span: Tensor = kept("span", Tensor, on_cpu=True)
    """The minimum of each input in the first task, and the largest distance from it. Generated samples are clipped to
    these bounds: noise on a constant background would make it easy to tell them from real samples."""
    keeps_classifiers = True

    @property
    def needs_old_data(self) -> bool:
        return self.settings.replay == "samples"

    def setup(self) -> None:
        super().setup()
        size = self.settings.replay_components, self.settings.replay_directions
        self.densities = Densities(*size, shrinkage=1.0, whiten=False)  # no shrinkage affects the drawn samples

    def training_data(self, task: Task) -> Samples:
        if self.settings.replay == "samples" or not self.tasks_learned:
            return super().training_data(task)
        rng, each = self.rng("replay", task.index), len(task.train) // len(task.classes)
        drawn = self.densities.sample(each, rng).clamp(self.low, self.low + self.span)
        drawn = drawn.view(-1, *task.train.x.shape[1:])
        numbers = torch.arange(len(self.densities)).repeat_interleave(each)
        weight = None if task.train.weight is None else torch.cat([torch.ones(len(drawn)), task.train.weight])
        return Samples(torch.cat([drawn, task.train.x]), torch.cat([numbers, task.train.y]), weight=weight)

    def end_task(self, task: Task) -> None:
        super().end_task(task)
        if self.settings.replay == "samples":
            self.memory.keep(task)
            return
        x, rng = task.train.x.flatten(1).cpu(), self.rng(SEED, task.index)
        if not len(self.densities):
            self.low = x.amin(0)
            self.span = (x - self.low).amax()
        self.densities.add(x, task.train.y.cpu(), task.classes, rng, task.train.weight)

    def keep_classes(self, kept: Tensor) -> None:
        self.densities.keep(kept)

    def check_state(self, extra: Mapping[str, Tensor], input_shape: tuple[int, ...]) -> None:
        if self.settings.replay == "samples":
            super().check_state(extra, input_shape)
            return
        inputs = math.prod(input_shape)
        bounds = {name: tensor for name, tensor in extra.items() if "/" not in name}
        check_shapes(bounds, {"low": (inputs,), "span": ()}, BOUNDS)
        check_finite(bounds, {"low": -math.inf, "span": 0.0}, BOUNDS)
        self.densities.check(section(extra, "density"), sum(map(len, self.classes)), inputs)
        rest = {name: t for name, t in extra.items() if name not in bounds and not name.startswith("density/")}
        super().check_state(rest, input_shape)
