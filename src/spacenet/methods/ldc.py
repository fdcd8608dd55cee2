"""LDC: class means follow the features as these drift, by a map that is learned from the new task's samples."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from annotated_types import Ge, Gt
from torch import Tensor

from spacenet.methods.base import Task, Uniform, kept, map_batches
from spacenet.methods.shared.distillation import Distillation, DistillationSettings
from spacenet.utils.tensors import take_tensors


@dataclass(frozen=True)
class LDCSettings(DistillationSettings):
    """How the network is kept from drifting, and how the rest is compensated."""

    strength: Annotated[float, Ge(0), Uniform(0.1, 30.0, log=True)] = 10.0
    """Factor of the distillation loss."""
    loss_over: Literal["all", "own"] = "own"
    ridge: Annotated[float, Gt(0), Uniform(1e-4, 10.0, log=True)] = 1e-3
    """Regularizes the map from old to new features, as a fraction of the old features' mean square: directions in which
    the new task's samples do not vary are left where they are."""


class LDC(Distillation):
    """The network is trained as in LwF. After each task, a linear map from the features before it to those after it is
    fitted on the task's samples and moves the means of old classes along; the nearest mean wins.

    Published with a map that is trained by gradient descent; here it is the least-squares solution, regularized towards
    no drift. Keeps no samples.
    """

    name = "ldc"
    strategy = "Regularization"
    reference = (
        "Gomez-Villa, Goswami, Wang, Bagdanov, Twardowski, van de Weijer: Exemplar-free Continual Representation "
        "Learning via Learnable Drift Compensation. ECCV, 2024"
    )
    settings_from = (
        "Distillation and training as in lwf here, with a strength of 10 and four epochs on Split Fashion-MNIST; the "
        "map's regularization hardly matters (0.001 to 1: 75.4 to 75.7 on held-out data of Split MNIST, one seed)."
    )
    settings: LDCSettings
    means: Tensor = kept("means", Tensor)
    """(classes, d) of the features, as far as they are known in the current network."""

    def end_task(self, task: Task) -> None:
        new = map_batches(self.features, task.train.x, self.device)
        if self.old:
            old = map_batches(lambda x: self.features_of(self.old, x), task.train.x, self.device)
            moved = self.means.cpu().double() + drift(old, new, self.means.cpu(), self.settings.ridge)
            self.means = moved.float().to(self.device)
        own = [new[task.train.y.cpu() == number].mean(0).to(self.device) for number in task.classes]
        self.means = torch.stack([*self.means, *own])
        super().end_task(task)

    def check_state(self, state: Mapping[str, Tensor], input_shape: tuple[int, ...]) -> None:
        means = self.classes[-1].stop, self.count_features(input_shape)
        super().check_state(take_tensors(state, {"means": means}, "class means"), input_shape)

    def predict(self, x: Tensor) -> Tensor:
        """The negative distance to each class's mean."""
        return -torch.cdist(self.features(x), self.means)


def drift(old: Tensor, new: Tensor, at: Tensor, ridge: float) -> Tensor:
    """How features at these points move, by an affine map that is fitted to how those of samples moved."""
    old, new, at = old.double(), new.double(), at.double()
    middle, moved = old.mean(0), new - old
    away = old - middle
    gram = away.T @ away / len(old)
    penalty = ridge * gram.diagonal().mean().clamp_min(1e-12) * torch.eye(len(gram), dtype=gram.dtype)
    slope: Tensor = torch.linalg.solve(gram + penalty, away.T @ (moved - moved.mean(0)) / len(old))
    return moved.mean(0) + (at - middle) @ slope
