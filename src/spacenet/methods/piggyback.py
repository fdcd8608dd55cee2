"""Piggyback: one frozen network, and for every task a mask of its weights."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from spacenet.errors import SettingsError
from spacenet.methods.base import Params, Samples, Task, Uniform, kept
from spacenet.methods.shared.dense import PhantomSettings
from spacenet.methods.shared.task_models import PerTaskBatchNorm
from spacenet.utils.tensors import take_tensors


@dataclass(frozen=True)
class PiggybackSettings(PhantomSettings):
    """How masks are learned."""

    initial: Annotated[float, Uniform(0.006, 0.03, log=True)] = 0.01
    """The score of every weight when a task begins."""
    threshold: float = 0.005
    """Weights with a score above the threshold are used."""

    def validate(self) -> None:
        super().validate()
        if not self.initial > self.threshold:
            message = f"{self.initial} is not above the threshold {self.threshold}: no weight would be used"
            raise SettingsError(message, setting="initial")


class Piggyback(PerTaskBatchNorm):
    """The first task trains the network; each later one learns which of its weights to use, and its own outputs.

    The published backbone is trained on ImageNet, the one here on the first task only. All tasks use its biases; each
    task has its own batch norm.
    """

    name = "piggyback"
    strategy = "Architectural"
    reference = (
        "Mallya, Davis, Lazebnik: Piggyback: Adapting a Single Network to Multiple Tasks by Learning to Mask Weights. "
        "ECCV, 2018"
    )
    settings_from = "As published except for the learning rate, which is ten times larger: better on held-out data."
    settings: PiggybackSettings
    training_space: ClassVar = {"training.learning_rate": Uniform(0.00003, 0.003, log=True)}

    masks: list[dict[str, Tensor]] = kept("mask", list, on_cpu=True)
    """The mask of each link for each task, eight weights per byte; none for the first task."""
    mask_scores: dict[str, nn.Parameter] = kept("task/scores", dict)
    """While a task learns its masks: a number for every weight, which is used if the number is large enough."""

    def begin_task(self, task: Task, data: Samples) -> None:
        super().begin_task(task, data)
        names = [link.name for link in self.inner_links()] if self.tasks_learned else []
        scores = {name: torch.full_like(self.params[name], self.settings.initial) for name in names}
        self.mask_scores = {name: nn.Parameter(score) for name, score in scores.items()}

    def named_parameters(self) -> dict[str, nn.Parameter]:
        """The backbone's weights get no gradient while masks are learned, so the optimizer skips them."""
        return super().named_parameters() | {f"scores/{name}": score for name, score in self.mask_scores.items()}

    def subnetwork(self, params: Params, task: int) -> dict[str, Tensor]:
        if task == self.tasks_learned:
            masks = {name: self._straight_through(score) for name, score in self.mask_scores.items()}
        else:
            masks = {name: unpack_mask(bits, params[name]) for name, bits in self.masks[task].items()}
        return {**params, **{name: params[name].detach() * mask for name, mask in masks.items()}}

    def _straight_through(self, score: Tensor) -> Tensor:
        """1 above the threshold and 0 below; the score gets the gradient of the mask."""
        return (score.detach() > self.settings.threshold) + (score - score.detach())

    def end_task(self, task: Task) -> None:
        on = {name: score.detach() > self.settings.threshold for name, score in self.mask_scores.items()}
        self.masks.append({name: pack_mask(mask) for name, mask in on.items()})
        super().end_task(task)

    def check_state(self, state: Mapping[str, Tensor], input_shape: tuple[int, ...]) -> None:
        sizes = {link.name: -(-self.params[link.name].numel() // 8) for link in self.inner_links()}
        tasks = range(1, len(self.classes))
        shapes = {f"mask/{task}/{name}": (size,) for task in tasks for name, size in sizes.items()}
        super().check_state(take_tensors(state, shapes, "masks", dtype=torch.uint8), input_shape)

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        super().load_state(state)
        self.mask_scores = {name: nn.Parameter(score) for name, score in self.mask_scores.items()}


def pack_mask(mask: Tensor) -> Tensor:
    """A mask as bits, eight per byte; the last byte is padded with zeros."""
    return torch.from_numpy(np.packbits(mask.cpu().numpy(), bitorder="little"))


def unpack_mask(bits: Tensor, like: Tensor) -> Tensor:
    """The mask that `pack_mask` packed, in the shape and on the device of its weights."""
    mask = np.unpackbits(bits.numpy(), count=like.numel(), bitorder="little")
    return torch.from_numpy(mask).to(like.device).view(like.shape).bool()
