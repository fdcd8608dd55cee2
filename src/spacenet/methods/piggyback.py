"""Piggyback: one frozen network, and for every task a mask of its weights."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spacenet.config.ranges import Range, Uniform
from spacenet.data.stream import Samples, Task
from spacenet.errors import SettingsError
from spacenet.methods.base import ANY, MethodSettings
from spacenet.methods.shared.subnetworks import PerTaskBatchNorm
from spacenet.space.blueprint import CPU, Blueprint, Params


@dataclass(frozen=True)
class PiggybackSettings(MethodSettings):
    """How masks are learned."""

    initial: float = 0.01
    """What a weight's score is when a task begins."""
    threshold: float = 0.005
    """Weights whose score is above take part."""

    def __post_init__(self) -> None:
        if not self.initial > self.threshold:
            raise SettingsError(f"initial: {self.initial} is not above the threshold {self.threshold}: all masks are 0")


class Piggyback(PerTaskBatchNorm):
    """The first task trains the network; each later one learns which of its weights to use, and its own outputs.

    The published backbone has learned ImageNet; here it knows the first task alone. Its biases stay; batch
    norm is each task's own.
    """

    name = "piggyback"
    strategy = "Architectural"
    reference = (
        "Mallya, Davis, Lazebnik: Piggyback: Adapting a Single Network to Multiple Tasks by Learning to Mask Weights. "
        "ECCV, 2018"
    )
    settings_from = "As published but for the learning rate, ten times larger: better on held-out data."
    Settings = PiggybackSettings
    settings: PiggybackSettings
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        ANY: {"training": {"optimizer": "adam", "learning_rate": 0.001}}
    }
    search_space: ClassVar[Mapping[str, Range]] = {
        "training.learning_rate": Uniform(0.00003, 0.003, log=True),
        "method.initial": Uniform(0.006, 0.03, log=True),
    }

    def __init__(self, blueprint: Blueprint, settings: MethodSettings, seed: int, device: torch.device = CPU) -> None:
        super().__init__(blueprint, settings, seed, device)
        self.masks: list[dict[str, Tensor]] = []
        """For each later task and link the mask, eight weights to a byte."""
        self.mask_scores: dict[str, nn.Parameter] = {}
        """While a task learns its masks: a number for every weight, which takes part where it is large enough."""

    def begin_task(self, task: Task, data: Samples) -> None:
        super().begin_task(task, data)
        shapes = {link.name: self.values[link.name] for link in self.inner_links()} if self.tasks_learned else {}
        self._learn_masks({name: torch.full_like(value, self.settings.initial) for name, value in shapes.items()})

    def resume_task(self, task: Task, data: Samples, tensors: Mapping[str, Tensor]) -> None:
        self._learn_masks(tensors)

    def _learn_masks(self, scores: Mapping[str, Tensor]) -> None:
        self.mask_scores = {name: nn.Parameter(score.to(self.device, copy=True)) for name, score in scores.items()}
        self.freeze(self.free_units() | self.free_outputs())

    def parameters(self) -> list[nn.Parameter]:
        """The backbone's weights get no gradient once there are masks to learn, so the optimiser passes them over."""
        return [*super().parameters(), *self.mask_scores.values()]

    def part(self, values: Params, task: int) -> dict[str, Tensor]:
        if task == 0:
            return dict(values)
        if task == self.tasks_learned:
            masks = {name: self._straight_through(score) for name, score in self.mask_scores.items()}
        else:
            masks = {name: unpacked(bits, values[name]) for name, bits in self.masks[task - 1].items()}
        return {**values, **{name: values[name].detach() * mask for name, mask in masks.items()}}

    def _straight_through(self, score: Tensor) -> Tensor:
        """1 above the threshold and 0 below; the score gets the mask's gradient as if it were the mask."""
        return (score.detach() > self.settings.threshold) + (score - score.detach())

    def end_task(self, task: Task) -> None:
        if self.mask_scores:
            on = {name: score.detach() > self.settings.threshold for name, score in self.mask_scores.items()}
            self.masks.append({name: packed(mask) for name, mask in on.items()})
        self.mask_scores = {}
        super().end_task(task)

    def task_state(self) -> dict[str, Tensor]:
        return {name: score.detach() for name, score in self.mask_scores.items()}

    def extra(self) -> dict[str, Tensor]:
        masks = enumerate(self.masks, 1)
        return {f"mask/{task}/{name}": bits for task, of_task in masks for name, bits in of_task.items()}

    def load_model(self, tensors: Mapping[str, Tensor]) -> None:
        super().load_model(tensors)
        names, tasks = [link.name for link in self.inner_links()], range(1, self.tasks_learned)
        self.masks = [{name: tensors[f"mask/{task}/{name}"].to(self.device) for name in names} for task in tasks]


def packed(mask: Tensor) -> Tensor:
    """A mask's bits, eight to a byte; the last byte is filled up with zeros."""
    bits = F.pad(mask.flatten().to(torch.uint8), (0, -mask.numel() % 8)).view(-1, 8)
    return (bits << _places(mask.device)).sum(1).to(torch.uint8)


def unpacked(bits: Tensor, like: Tensor) -> Tensor:
    """The mask again, in the shape of the weights it is for."""
    return (bits[:, None] >> _places(bits.device) & 1).flatten()[: like.numel()].view(like.shape).bool()


def _places(device: torch.device) -> Tensor:
    return torch.arange(8, dtype=torch.uint8, device=device)
