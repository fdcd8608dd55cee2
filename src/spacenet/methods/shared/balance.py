"""Balancing the classifiers of different tasks: they were trained separately, so their scores have different scales.

Each task's scores are multiplied by one number and shifted by another, after the network has computed them. The order
of classes within a task does not change.

weights  Zhao et al.: Maintaining Discrimination and Fairness in Class Incremental Learning. CVPR, 2020. There the norm
         of new classifiers is matched to that of old ones; here all are matched to the mean.
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
MINIMUM = 1e-6
"""A norm or standard deviation below this is not meaningful: the task keeps its scale."""


class Balance:
    """The scale of each task's scores, and the transformation that makes them comparable."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.mean = self.std = torch.zeros(0)
        """Of the right class's score over each task's own samples, when the task had been learned."""

    def record(self, scores: Tensor, target: Tensor) -> None:
        """Add a task: the scores of its classes (n, classes) for its samples, and the columns of the right ones."""
        right = scores.double().gather(1, target[:, None])
        self.mean = torch.cat([self.mean, right.mean().float()[None]])
        self.std = torch.cat([self.std, right.std(correction=0).float()[None]])

    def apply(self, predictor: Pack, classifier: Tensor, tasks: Sequence[range]) -> Pack:
        """The same prediction with balanced scores, given the weights into the outputs and the tasks' classes."""
        if self.kind == "none" or not tasks:
            return predictor
        outputs = torch.ones(len(classifier)), torch.zeros(len(classifier))
        for each, values in zip(outputs, self._scale_and_shift(classifier, tasks), strict=True):
            for classes, value in zip(tasks, values.float().tolist(), strict=True):
                each[classes.start : classes.stop] = value
        scale, shift = (each.to(classifier.device) for each in outputs)

        def forward(params: Params, x: Tensor) -> Tensor:
            found: Tensor = predictor.forward(params, x) * params[SCALE] + params[SHIFT]
            return found

        return Pack(forward, {**predictor.params, SCALE: scale, SHIFT: shift})

    def _scale_and_shift(self, classifier: Tensor, tasks: Sequence[range]) -> tuple[Tensor, Tensor]:
        """The factor of each task's scores and what is then added, so that all tasks match their mean."""
        if self.kind == "weights":
            norms = classifier.cpu().double().flatten(1).norm(dim=1)
            scale = _factor_to_mean(torch.stack([norms[classes.start : classes.stop].mean() for classes in tasks]))
            return scale, torch.zeros(len(tasks))
        mean, scale = self.mean.double(), _factor_to_mean(self.std.double())
        return scale, mean.mean() - mean * scale

    def tensors(self) -> dict[str, Tensor]:
        """What is kept, by name: two numbers of each task, or nothing."""
        return {"mean": self.mean, "std": self.std} if len(self.mean) else {}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        none = torch.zeros(0)
        self.mean, self.std = tensors.get("mean", none).clone(), tensors.get("std", none).clone()

    def check(self, tensors: Mapping[str, Tensor], tasks: int) -> None:
        """Raise `ValueError` if `tensors` cannot have returned this after this number of tasks."""
        kept = {"mean": float("-inf"), "std": 0.0} if self.kind == "logits" and tasks else {}
        check_shapes(tensors, dict.fromkeys(kept, (tasks,)), WHAT)
        check_finite(tensors, kept, WHAT)


def _factor_to_mean(size: Tensor) -> Tensor:
    """The factor that brings each size to the mean of the meaningful ones."""
    meaningful = size > MINIMUM
    mean = size[meaningful].mean()
    return torch.where(meaningful, mean / size, 1.0)
