"""Balancing the classifiers of different tasks: they learned apart, so one may speak louder than another.

Each task's scores are multiplied by one number and shifted by another, after the network has answered. Within a task
that changes no order.

weights  Zhao et al.: Maintaining Discrimination and Fairness in Class Incremental Learning. CVPR, 2020. There new
         classifiers are brought to the length of the old ones; here all to the mean, for none of them came first.
logits   From the task's own samples alone, right after it was learned.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import torch
from torch import Tensor

from spacenet.space.blueprint import Params
from spacenet.space.pack import Pack
from spacenet.utils.tensors import check_finite, check_shapes

Kind = Literal["none", "weights", "logits"]
WHAT = "the balance of tasks"
SCALE, SHIFT = "balance/scale", "balance/shift"
LEAST = 1e-6
"""A length or a std below it says nothing: the task is left at the scale it has."""


class Balance:
    """How loud each task's classifier speaks, and what makes all of them speak alike."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.mean = self.std = torch.zeros(0)
        """Of the right class's score over each task's own samples, when the task had been learned."""

    def note(self, scores: Tensor, target: Tensor) -> None:
        """Enter a task: the scores of its classes (n, classes) for its samples, and the right ones' columns."""
        right = scores.double().gather(1, target[:, None])
        self.mean = torch.cat([self.mean, right.mean().float()[None]])
        self.std = torch.cat([self.std, right.std(correction=0).float()[None]])

    def applied(self, predictor: Pack, classifier: Tensor, tasks: Sequence[range]) -> Pack:
        """The same prediction with the tasks' scores balanced.

        classifier  the weights into the outputs, (outputs, …)
        tasks       the classes of each task learned
        """
        if self.kind == "none" or not tasks:
            return predictor
        scale, shift = (
            _for_outputs(each, tasks, len(classifier), otherwise).to(classifier.device)
            for each, otherwise in zip(self._of_tasks(classifier, tasks), (1.0, 0.0), strict=True)
        )

        def forward(values: Params, x: Tensor) -> Tensor:
            return predictor.forward(values, x) * values[SCALE] + values[SHIFT]

        return Pack(forward, {**predictor.params, SCALE: scale, SHIFT: shift})

    def _of_tasks(self, classifier: Tensor, tasks: Sequence[range]) -> tuple[Tensor, Tensor]:
        """What each task's scores are multiplied by, and what is added then: after it, all are as the mean task was."""
        if self.kind == "weights":
            lengths = classifier.cpu().double().flatten(1).norm(dim=1)
            scale = _to_mean(torch.stack([lengths[classes.start : classes.stop].mean() for classes in tasks]))
            return scale, torch.zeros(len(tasks))
        mean = self.mean.double()
        scale = _to_mean(self.std.double())
        return scale, mean.mean() - mean * scale

    def tensors(self) -> dict[str, Tensor]:
        """All that is kept, by name, for a file: two numbers of each task, or nothing."""
        return {"mean": self.mean, "std": self.std} if len(self.mean) else {}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Take back what `tensors` gave."""
        none = torch.zeros(0)
        self.mean, self.std = tensors.get("mean", none).clone(), tensors.get("std", none).clone()

    def check(self, tensors: Mapping[str, Tensor], tasks: int) -> None:
        """Raise `ValueError` if `tensors` could not have given this after so many tasks."""
        kept = {"mean": float("-inf"), "std": 0.0} if self.kind == "logits" and tasks else {}
        check_shapes(tensors, dict.fromkeys(kept, (tasks,)), WHAT)
        check_finite(tensors, kept, WHAT)


def _to_mean(size: Tensor) -> Tensor:
    """What brings each size to the mean of those that say something."""
    says = size > LEAST
    mean = size[says].mean()
    return torch.where(says, mean / size, 1.0)


def _for_outputs(each: Tensor, tasks: Sequence[range], outputs: int, otherwise: float) -> Tensor:
    """A number of each task for each of its outputs; outputs of a task still being learned get another."""
    found = torch.full((outputs,), otherwise)
    for number, classes in zip(each.tolist(), tasks, strict=True):
        found[classes.start : classes.stop] = number
    return found
