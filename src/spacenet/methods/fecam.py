"""FeCAM: features learned on the first task and then frozen; each class has its mean and its covariance in them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from spacenet.config.ranges import Uniform
from spacenet.data.stream import Samples, Task
from spacenet.errors import SettingsError
from spacenet.methods.base import MethodSettings, map_batches
from spacenet.methods.shared.dense import DenseMethod
from spacenet.space.blueprint import CPU, Blueprint


def shrunk(covariance: Tensor, diagonal: float, off_diagonal: float) -> Tensor:
    """The covariance, plus so many times the mean variance on its diagonal and the mean covariance beside it."""
    size = len(covariance)
    variance = covariance.diagonal().mean()
    beside = (covariance.sum() - covariance.diagonal().sum()) / max(1, size * (size - 1))
    identity = torch.eye(size, dtype=covariance.dtype)
    return covariance + diagonal * variance * identity + off_diagonal * beside * (1 - identity)


def correlation(covariance: Tensor) -> Tensor:
    """The same with variances of 1, so that distances to classes that vary much or little can be compared.

    The covariance of a single sample is 0; then all features are as independent as can be.
    """
    if not bool(covariance.any()):
        return torch.eye(len(covariance), dtype=covariance.dtype)
    deviation = covariance.diagonal().sqrt()
    return covariance / (deviation[:, None] * deviation)


@dataclass(frozen=True)
class FeCAMSettings(MethodSettings):
    """How features are bent, and how covariances are shrunk."""

    power: float = 0.5
    """Features are raised to this power before anything else (Tukey's transformation), so that they are nearer to
    Gaussian."""
    diagonal: float = 1.0
    """How many times the mean variance is added to each variance."""
    off_diagonal: float = 1.0
    """How many times the mean covariance is added to each covariance; at most as often as variances."""

    def __post_init__(self) -> None:
        if not 0.0 < self.power <= 1.0:
            raise SettingsError(f"power: {self.power} is out of range (need more than 0, at most 1)")
        if not 0.0 < self.diagonal < float("inf"):
            raise SettingsError(f"diagonal: {self.diagonal} is out of range (need more than 0)")
        if not 0.0 <= self.off_diagonal <= self.diagonal:
            raise SettingsError(
                f"off-diagonal: {self.off_diagonal} is out of range (need 0 to diagonal's {self.diagonal})"
            )


class FeCAM(DenseMethod):
    """A dense network learns the first task and never changes again. A sample belongs to the class to which it is
    nearest, measured by the class's own covariance of what enters the classifier. Keeps no samples."""

    name = "fecam"
    strategy = "Statistical"
    reference = (
        "Goswami, Liu, Twardowski, van de Weijer: FeCAM: Exploiting the Heterogeneity of Class Distributions in "
        "Exemplar-Free Continual Learning. NeurIPS, 2023"
    )
    settings_from = (
        "Power and shrinkage as published, lengths of 1 as in the authors' code. Trained like the other dense methods: "
        "momentum, weight decay and schedule as published were worse on held-out training data."
    )
    Settings = FeCAMSettings
    settings: FeCAMSettings
    search_space: ClassVar = {
        **DenseMethod.search_space,
        "training.epochs": Uniform(1, 40, integer=True),
        "method.diagonal": Uniform(1.0, 10.0, log=True),
    }

    def __init__(self, blueprint: Blueprint, settings: MethodSettings, seed: int, device: torch.device = CPU) -> None:
        super().__init__(blueprint, settings, seed, device)
        self.classifier = next(link.name for link in blueprint.links if link.target == blueprint.output.name)
        self.means = torch.zeros(0)
        """(classes, d) of the features as they are."""
        self.covariances = torch.zeros(0)
        """(classes, d, d) of the features' powers."""
        self._inverse: list[Tensor] = []
        """For each class, as soon as it was needed, the inverse of its correlations."""

    def epochs(self, planned: int) -> int:
        return 0 if self.tasks_learned else planned

    def begin_task(self, task: Task, data: Samples) -> None:
        if not self.tasks_learned:
            super().begin_task(task, data)

    def end_task(self, task: Task) -> None:
        h = map_batches(self.features, task.train.x, self.device)
        own = [h[task.train.y.cpu() == number] for number in task.classes]
        means = torch.stack([each.mean(0) for each in own])
        covariances = torch.stack([torch.cov(self._bent(each).T, correction=0) for each in own])
        self.means = torch.cat([self.means, means]) if self.tasks_learned else means
        self.covariances = torch.cat([self.covariances, covariances]) if self.tasks_learned else covariances
        super().end_task(task)

    def features(self, x: Tensor) -> Tensor:
        """What enters the classifier: (n, d)."""
        found: dict[str, Tensor] = {}
        with torch.no_grad():
            self.blueprint.forward(self.values, x, found.__setitem__)
        return found[self.classifier].flatten(1)

    def _bent(self, h: Tensor) -> Tensor:
        return h.clamp_min(0.0) ** self.settings.power

    def predict(self, x: Tensor) -> Tensor:
        """How near each class is, as the negative squared Mahalanobis distance, at length 1."""
        at = F.normalize(self._bent(self.features(x)))
        means = F.normalize(self._bent(self.means)).to(self.device)
        away = [at - mean for mean in means]
        return -torch.stack([(d @ inverse * d).sum(1) for d, inverse in zip(away, self._inverses(), strict=True)], 1)

    def _inverses(self) -> list[Tensor]:
        settings = self.settings
        for covariance in self.covariances[len(self._inverse) :].double():
            mixed = correlation(shrunk(covariance, settings.diagonal, settings.off_diagonal))
            self._inverse.append(torch.linalg.pinv(mixed, hermitian=True).float().to(self.device))
        return self._inverse

    def extra(self) -> dict[str, Tensor]:
        return {"means": self.means, "covariances": self.covariances}

    def load_model(self, tensors: Mapping[str, Tensor]) -> None:
        super().load_model(tensors)
        self.means, self.covariances = tensors["means"].clone(), tensors["covariances"].clone()
        self._inverse = []
