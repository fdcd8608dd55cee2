"""RanPAC: ridge regression of the classes on many random features, computed in closed form."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import torch
from annotated_types import Ge, Le
from torch import Tensor
from torch.nn import functional as F

from spacenet.config.settings import WIDE
from spacenet.methods.base import Choice, Params, Task, kept
from spacenet.methods.shared.class_statistics import UntrainedMethod, UntrainedSettings
from spacenet.utils.tensors import take_tensors

RIDGES = tuple(10.0**power for power in range(-7, 1))
"""What is tried for the ridge, in multiples of the mean of the correlations' diagonal."""
HELD_OUT = 5
"""One sample in so many of a task decides which ridge predicts best."""
BATCH = 4096


@dataclass(frozen=True)
class RanPACSettings(UntrainedSettings):
    """What random features are computed from, and how many there are."""

    random_features: Annotated[int, Ge(1), Le(WIDE), Choice((500, 1000, 2000, 4000))] = 2000
    """Random features. Published with 10000; memory grows with the square."""


class RanPAC(UntrainedMethod):
    """A linear classifier on rectified random projections, the same as from all data at once. Published on features of
    a pretrained encoder. The ridge is chosen anew with each task, by the squared error on a fifth of its samples. Keeps
    no samples."""

    name = "ranpac"
    reference = (
        "McDonnell, Gong, Parvaneh, Abbasnejad, van den Hengel: RanPAC: Random Projections and Pre-trained Models for "
        "Continual Learning. NeurIPS, 2023"
    )
    settings_from = "Fewer random features than published (10000), and without its adaptation in the first task."
    settings: RanPACSettings
    correlations: Tensor = kept("network/correlations", Tensor, on_cpu=True)
    """The sum of r rᵀ over all samples, (random features, random features)."""
    sums: Tensor = kept("network/sums", Tensor, on_cpu=True)
    """The sum of r over the samples of each class, (random features, classes)."""
    dimensions: int = kept("network/dimensions", int)
    """Of what random features are computed from."""
    ridge: Tensor = kept("network/ridge", lambda: torch.ones(1), on_cpu=True)

    def add_classes(self, h: Tensor, y: Tensor, task: Task) -> None:
        if not self.dimensions:
            self.dimensions, size = h.shape[1], self.settings.random_features
            self.correlations, self.sums = torch.zeros(size, size), torch.zeros(size, 0)
        self.sums = F.pad(self.sums, (0, len(task.classes)))
        held, projection = torch.arange(len(h)) % HELD_OUT == HELD_OUT - 1, self._projection()
        self._add(h[~held], y[~held], projection)
        if bool(held.any()):
            self.ridge = torch.tensor([self._choose_ridge(random_features(projection, h[held]), y[held])])
            self._add(h[held], y[held], projection)

    def keep_classes(self, kept: Tensor) -> None:
        self.sums = self.sums[:, kept]

    def check_state(self, state: Mapping[str, Tensor], input_shape: tuple[int, ...]) -> None:
        size, what = self.settings.random_features, "the random features"
        shapes = {"network/correlations": (size, size), "network/sums": (size, self.classes[-1].stop)}
        rest = take_tensors(state, shapes, what)
        inputs = self.count_features(input_shape)
        rest = take_tensors(rest, {"network/dimensions": ()}, what, dtype=torch.int64, least=inputs, most=inputs)
        super().check_state(take_tensors(rest, {"network/ridge": (1,)}, what, least=0.0), input_shape)

    def _add(self, h: Tensor, y: Tensor, projection: Tensor) -> None:
        for part, labels in zip(h.split(BATCH), y.split(BATCH), strict=True):
            found = random_features(projection, part)
            self.correlations += found.T @ found
            self.sums += found.T @ F.one_hot(labels, self.sums.shape[1]).float()

    def _choose_ridge(self, found: Tensor, y: Tensor) -> float:
        target = F.one_hot(y, self.sums.shape[1]).float()
        errors = {ridge: float((found @ self._solve(ridge) - target).square().mean()) for ridge in RIDGES}
        return min(errors, key=lambda ridge: errors[ridge])

    def _solve(self, ridge: float) -> Tensor:
        """The classifier's weights, (random features, classes)."""
        gram = self.correlations.double()
        added = ridge * gram.diagonal().mean().clamp_min(torch.finfo(torch.float32).tiny)
        weights: Tensor = torch.linalg.solve_ex(gram.diagonal_scatter(gram.diagonal() + added), self.sums.double())[0]
        return weights.float()

    def _projection(self) -> Tensor:
        """(random features, d). It follows from the seed and is not kept."""
        drawn = torch.randn(self.settings.random_features, self.dimensions, generator=self.rng("projection"))
        return drawn / math.sqrt(self.dimensions)

    def compute_params(self) -> dict[str, Tensor]:
        return {"projection": self._projection(), "classifier": self._solve(float(self.ridge))}

    def scores(self, params: Params, h: Tensor) -> Tensor:
        return random_features(params["projection"], h) @ params["classifier"]


def random_features(projection: Tensor, h: Tensor) -> Tensor:
    """(n, d) to (n, random features)."""
    return (h @ projection.T).relu_()
