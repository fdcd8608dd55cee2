"""A linear classifier of all classes on random features, computed in closed form, in addition to densities.

Random features are rectified sums of features with random signs; on edges each one sees a random window of the image.
Their correlations and their sums for each class are added up over all tasks, so the classifier is the same as from all
samples at once, whatever the order of the tasks. Signs and windows follow from the seed and are not kept.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from spacenet.methods.density.scaling import FeatureScaling
from spacenet.space.blueprint import Params
from spacenet.utils.tensors import check_finite, check_shapes, lower_triangle, symmetric_matrix, triangle_size

RIDGE = 1e-4
"""What is added to each variance of a random feature, as a fraction of the mean one. Others were no better."""
FACTOR = 10.0
"""Of the classifier's scores, which are about 1 for the right class and 0 for others, to get log-probabilities. Chosen
on held-out training data of Split MNIST and Split Fashion-MNIST."""
NARROWEST = 2
"""Cells of the smallest window along each side."""
BATCH = 4096
WHAT = "the readout"


@dataclass
class Readout:
    """Ridge regression of the classes on random features of what class statistics are computed on."""

    size: int
    """The number of random features; 0 for no readout."""
    seed: int
    grid: tuple[int, int] | None = None
    """Rows and columns of cells, the last dimensions of the representation; None if it is no image."""
    correlations: Tensor | None = None
    """The sum of r rᵀ over all samples, (size · (size + 1) / 2,): a symmetric matrix without its upper part."""
    sums: Tensor | None = None
    """The sum of r over the samples of each class, (size, classes)."""

    def add(self, h: Tensor, y: Tensor, classes: range, scaling: FeatureScaling, weight: Tensor | None = None) -> None:
        """Add a task's classes, given features (n, d), labels y and weights of its samples."""
        sums = self._add_samples(h, y, classes, scaling, weight)
        self.sums = sums if self.sums is None else torch.cat([self.sums, sums], 1)

    def update(self, h: Tensor, y: Tensor, scaling: FeatureScaling, weight: Tensor | None = None) -> None:
        """Add more samples of known classes."""
        assert self.sums is not None, "there are no classes yet"
        self.sums = self.sums + self._add_samples(h, y, range(self.sums.shape[1]), scaling, weight)

    def _add_samples(
        self, h: Tensor, y: Tensor, classes: range, scaling: FeatureScaling, weight: Tensor | None
    ) -> Tensor:
        """Add samples to the correlations; returns their sums for each class."""
        params = self._projection(h.shape[1], scaling)
        gram = self._gram() if self.correlations is not None else torch.zeros(self.size, self.size, dtype=torch.double)
        sums = torch.zeros(self.size, len(classes), dtype=torch.double)
        for rows in torch.arange(len(h)).split(BATCH):
            found = random_features(params, h[rows])
            weighted = found if weight is None else found * weight[rows, None]
            gram += weighted.T @ found
            sums += weighted.T @ F.one_hot(y[rows].long() - classes.start, len(classes)).to(found.dtype)
        self.correlations = lower_triangle(gram).float()
        return sums.float()

    def keep(self, classes: Tensor) -> None:
        """Remove the sums of all classes but these. What was added to the correlations for them stays."""
        if self.sums is not None:
            self.sums = self.sums[:, classes].contiguous()

    def select(self, classes: Tensor) -> "Readout":
        """The same for these classes, each of them as often as it is named."""
        found = replace(self)
        found.keep(classes)
        return found

    def compute_params(self, scaling: FeatureScaling) -> dict[str, Tensor]:
        """What `readout_scores` computes with."""
        return self._projection(len(scaling.mean), scaling) | {"classifier": self._solve()}

    def _projection(self, dimensions: int, scaling: FeatureScaling) -> dict[str, Tensor]:
        weight = scaling.fold_into(draw_projection(self.size, dimensions, self.grid, self.seed))
        return {"weight": weight.float(), "bias": -(weight @ scaling.mean.double()).float()}

    def _solve(self) -> Tensor:
        """The classifier's weights, (size, classes)."""
        assert self.sums is not None, "there are no classes yet"
        gram = self._gram()
        ridge = RIDGE * gram.diagonal().mean().clamp_min(torch.finfo(torch.float32).tiny)
        weights: Tensor = torch.linalg.solve_ex(gram + ridge * torch.eye(self.size), self.sums.double())[0]
        return weights.float()

    def _gram(self) -> Tensor:
        assert self.correlations is not None, "there are no classes yet"
        return symmetric_matrix(self.correlations.double())

    def tensors(self) -> dict[str, Tensor]:
        if self.correlations is None or self.sums is None:
            return {}
        return {"correlations": self.correlations, "sums": self.sums}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        self.correlations, self.sums = tensors.get("correlations"), tensors.get("sums")

    def check(self, tensors: Mapping[str, Tensor], classes: int) -> None:
        """Raise `ValueError` if `tensors` cannot have returned this for this number of classes."""
        shapes = {"correlations": (triangle_size(self.size),), "sums": (self.size, classes)}
        check_shapes(tensors, shapes, WHAT)
        check_finite(tensors, dict.fromkeys(shapes, 0.0), WHAT)  # random features are never negative
        check_finite({"sums": Readout(self.size, 0, None, **tensors)._solve()}, {"sums": -torch.inf}, WHAT)


def random_features(params: Params, h: Tensor) -> Tensor:
    """(n, d) to (n, size)."""
    return torch.addmm(params["bias"], h, params["weight"].T).relu_()


def readout_scores(params: Params, h: Tensor) -> Tensor:
    """About log-probabilities of the classes at features (n, d), up to a constant that all share: (n, classes)."""
    return random_features(params, h) @ params["classifier"] * FACTOR


def draw_projection(size: int, dimensions: int, grid: tuple[int, int] | None, seed: int) -> Tensor:
    """Random signs within a random window of the grid and 0 elsewhere, each row divided by its norm, (size, d).

    The raw bits of PCG64 are the same in every version of NumPy.
    """
    bits = np.random.PCG64(seed)
    drawn = bits.random_raw(-(-size * dimensions // 64)).astype("<u8").view(np.uint8)
    signs = np.unpackbits(drawn)[: size * dimensions].reshape(size, dimensions) * 2.0 - 1.0
    if grid is not None:
        down, across = (_draw_intervals(bits, size, side) for side in grid)
        window = (down[:, :, None] & across[:, None, :]).reshape(size, -1)
        signs *= np.tile(window, dimensions // window.shape[1])
    return F.normalize(torch.from_numpy(signs)).float()


def _draw_intervals(bits: np.random.PCG64, count: int, side: int) -> "np.ndarray[tuple[int, int], np.dtype[np.bool_]]":
    """Random intervals of at least `NARROWEST` cells of a side, (count, side)."""
    least = min(NARROWEST, side)
    drawn = (bits.random_raw((2, count)) >> np.uint64(1)).astype(np.int64)
    length = least + drawn[0] % (side - least + 1)
    begin, place = drawn[1] % (side - length + 1), np.arange(side)
    inside: np.ndarray[tuple[int, int], np.dtype[np.bool_]] = (place >= begin[:, None]) & (
        place < (begin + length)[:, None]
    )
    return inside
