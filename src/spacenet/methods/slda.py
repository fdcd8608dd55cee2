"""Streaming LDA: a mean for each class, and one covariance matrix that all classes share and update."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import torch
from annotated_types import Gt, Le
from torch import Tensor

from spacenet.methods.base import Params, Task, Uniform, kept
from spacenet.methods.shared.class_statistics import UntrainedMethod, UntrainedSettings
from spacenet.utils.tensors import take_tensors

MOST_SAMPLES = 2**53
"""Larger numbers are not exact in 64 bits."""


@dataclass(frozen=True)
class SLDASettings(UntrainedSettings):
    """What classes are described on, and how far their covariance is shrunk."""

    shrinkage: Annotated[float, Gt(0), Le(1), Uniform(1e-5, 0.9, log=True)] = 1e-4
    """How far the covariance is shrunk towards the identity: near 0 not at all, 1 completely."""


class SLDA(UntrainedMethod):
    """Linear discriminants from the classes' means and their common covariance, the same as from all data at once.
    Published on features of a network pretrained on other data; here there is none. Keeps no samples."""

    name = "slda"
    reference = (
        "Hayes, Kanan: Lifelong Machine Learning with Deep Streaming Linear Discriminant Analysis. CVPR Workshops, 2020"
    )
    settings_from = "As published; on held-out training data others were no better, on edges as on inputs."
    settings: SLDASettings
    samples: int = kept("network/samples", int)
    means: Tensor = kept("network/means", Tensor, on_cpu=True)
    """(classes, d)"""
    middle: Tensor = kept("network/middle", Tensor, on_cpu=True)
    """The mean of the first task's classes when it was learned, (d,)."""
    covariance: Tensor = kept("network/covariance", Tensor, on_cpu=True)
    """(d, d), of all samples seen, around the mean of each sample's class."""

    def add_classes(self, h: Tensor, y: Tensor, task: Task) -> None:
        means = torch.stack([h[y == number].mean(0) for number in task.classes])
        around = h - means[y - task.classes.start]
        covariance = around.T @ around / len(h)
        self.middle = self.middle if len(self.middle) else means.mean(0)
        before, self.samples = self.samples, self.samples + len(h)
        self.means = torch.stack([*self.means, *means])
        self.covariance = torch.lerp(self.covariance, covariance, len(h) / self.samples) if before else covariance

    def keep_classes(self, kept: Tensor) -> None:
        self.means = self.means[kept]

    def check_state(self, state: Mapping[str, Tensor], input_shape: tuple[int, ...]) -> None:
        size = self.count_features(input_shape)
        shapes: dict[str, tuple[int, ...]] = {"network/means": (self.classes[-1].stop, size)}
        shapes |= {"network/covariance": (size, size), "network/middle": (size,)}
        rest = take_tensors(state, shapes, "class statistics")
        rest = take_tensors(
            rest, {"network/samples": ()}, "class statistics", dtype=torch.int64, least=1, most=MOST_SAMPLES
        )
        super().check_state(rest, input_shape)

    def compute_params(self) -> dict[str, Tensor]:
        """Discriminants around the first task's classes, so that a large common offset costs no precision."""
        middle = self.middle.double()
        means, part = self.means.double() - middle, self.settings.shrinkage
        mixed = (1 - part) * self.covariance.double() + part * torch.eye(len(middle), dtype=torch.double)
        weight = torch.linalg.solve(mixed, means.T).T
        constant = -(weight * means).sum(1) / 2
        return {"middle": middle.float(), "weight": weight.float(), "constant": constant.float()}

    def scores(self, params: Params, h: Tensor) -> Tensor:
        return (h - params["middle"]) @ params["weight"].T + params["constant"]
