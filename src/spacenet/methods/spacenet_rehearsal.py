"""SpaceNet-Rehearsal: the paper's hybrid that replays the data of all earlier tasks, or samples that are like it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from spacenet.data.stream import Samples, Task
from spacenet.errors import SettingsError
from spacenet.methods.base import MethodSettings
from spacenet.methods.density.densities import Densities
from spacenet.methods.shared.sparse import AdaptiveMethod
from spacenet.methods.shared.sparse_settings import AdaptiveSettings
from spacenet.space.blueprint import CPU, Blueprint
from spacenet.utils.seeding import generator
from spacenet.utils.tensors import check_finite, check_shapes, in_section, section

BOUNDS = "the inputs' bounds"


@dataclass(frozen=True)
class RehearsalSettings(AdaptiveSettings):
    """How much of the network a task may use, how much its connections move, and what is replayed."""

    replay: Literal["samples", "summaries"] = "samples"
    """What stands for old tasks: all their samples, or new ones drawn from a summary of each class, so that no sample
    is kept."""
    replay_components: int = 10
    """Gaussians of a class's summary."""
    replay_directions: int = 20
    """Directions for each of them in which its variance is kept."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("replay_components", "replay_directions"):
            if getattr(self, name) < 1:
                raise SettingsError(f"{name.replace('_', '-')}: {getattr(self, name)} is too small (need 1 or more)")


class SpaceNetRehearsal(AdaptiveMethod):
    """SpaceNet while old data, or samples like it, is replayed; the old classifiers stay connected, frozen."""

    name = "spacenet-rehearsal"
    strategy = "Rehearsal"
    Settings = RehearsalSettings
    settings: RehearsalSettings
    keeps_classifiers = True

    @property
    def needs_old_data(self) -> bool:
        return self.settings.replay == "samples"

    def __init__(self, blueprint: Blueprint, settings: MethodSettings, seed: int, device: torch.device = CPU) -> None:
        super().__init__(blueprint, settings, seed, device)
        # Only to draw from, so nothing is shrunk.
        self.densities = Densities(
            self.settings.replay_components, self.settings.replay_directions, shrinkage=1.0, whiten=False
        )
        self.low = self.span = torch.zeros(0)
        """The smallest value of each input in the first task, and how far inputs reach beyond it. What is drawn stays
        within: samples with a ground that is not even would be known for old ones by that alone."""

    def training_data(self, task: Task) -> Samples:
        if self.settings.replay == "samples" or not self.tasks_learned:
            return super().training_data(task)
        rng, each = generator(self.seed, "replay", task.index), len(task.train) // len(task.classes)
        drawn = self.densities.sample(each, rng).clamp(self.low, self.low + self.span)
        drawn = drawn.view(-1, *task.train.x.shape[1:])
        numbers = torch.arange(len(self.densities)).repeat_interleave(each)
        return Samples(torch.cat([drawn, task.train.x]), torch.cat([numbers, task.train.y]))

    def end_task(self, task: Task) -> None:
        super().end_task(task)
        if self.settings.replay == "samples":
            self.memory.keep(task)
            return
        x, rng = task.train.x.flatten(1).cpu(), generator(self.seed, "summaries", task.index)
        if not len(self.densities):
            self.low = x.amin(0)
            self.span = (x - self.low).amax()
        self.densities.add(x, task.train.y.cpu(), task.classes, rng)

    def extra(self) -> dict[str, Tensor]:
        if not len(self.densities):
            return super().extra()
        replayed = {**in_section("density", self.densities.tensors()), "low": self.low, "span": self.span}
        return {**super().extra(), **replayed}

    def check_extra(self, extra: Mapping[str, Tensor], input_shape: tuple[int, ...]) -> None:
        if self.settings.replay == "samples":
            super().check_extra(extra, input_shape)
            return
        inputs = math.prod(input_shape)
        bounds = {name: tensor for name, tensor in extra.items() if "/" not in name}
        check_shapes(bounds, {"low": (inputs,), "span": ()}, BOUNDS)
        check_finite(bounds, {"low": -math.inf, "span": 0.0}, BOUNDS)
        summaries = section(extra, "density")
        self.densities.check(summaries, sum(map(len, self.classes)), inputs)
        own = bounds.keys() | in_section("density", summaries).keys()
        super().check_extra({name: tensor for name, tensor in extra.items() if name not in own}, input_shape)

    def load_model(self, tensors: Mapping[str, Tensor]) -> None:
        super().load_model(tensors)
        self.densities.load(section(tensors, "density"))
        if len(self.densities):
            self.low, self.span = tensors["low"].clone(), tensors["span"].clone()
