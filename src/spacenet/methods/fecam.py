"""FeCAM: features are learned on the first task and then frozen; each class has its own mean and covariance."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import torch
from annotated_types import Ge, Gt, Le
from torch import Tensor
from torch.nn import functional as F

from spacenet.errors import SettingsError
from spacenet.methods.base import MethodSettings, Task, Uniform, kept, map_batches
from spacenet.methods.shared.frozen_features import FrozenFeatures
from spacenet.utils.tensors import take_tensors


def shrink(covariance: Tensor, diagonal: float, off_diagonal: float) -> Tensor:
    """The covariance plus a multiple of the mean variance on the diagonal and of the mean covariance beside it."""
    size, variance = len(covariance), covariance.diagonal().mean()
    beside = (covariance.sum() - covariance.diagonal().sum()) / max(1, size * (size - 1))
    identity = torch.eye(size, dtype=covariance.dtype)
    return covariance + diagonal * variance * identity + off_diagonal * beside * (1 - identity)


def normalize_variances(covariance: Tensor) -> Tensor:
    """The correlation matrix: with variances of 1, distances to classes of different variance are comparable."""
    if not bool(covariance.any()):  # a single sample; its features count as independent
        return torch.eye(len(covariance), dtype=covariance.dtype)
    deviation = covariance.diagonal().sqrt()
    return covariance / (deviation[:, None] * deviation)


@dataclass(frozen=True)
class FeCAMSettings(MethodSettings):
    """How features are transformed, and how covariances are shrunk."""

    power: Annotated[float, Gt(0), Le(1)] = 0.5
    """Exponent that makes the distribution of features more Gaussian (Tukey's transformation)."""
    diagonal: Annotated[float, Gt(0), Uniform(1.0, 10.0, log=True)] = 1.0
    """Multiple of the mean variance that is added to each variance."""
    off_diagonal: Annotated[float, Ge(0)] = 1.0
    """Multiple of the mean covariance that is added to each covariance; at most as large as diagonal."""

    def validate(self) -> None:
        super().validate()
        if self.off_diagonal > self.diagonal:
            message = f"{self.off_diagonal} is out of range (at most diagonal, {self.diagonal})"
            raise SettingsError(message, setting="off_diagonal")


class FeCAM(FrozenFeatures):
    """A dense network is trained on the first task and then frozen. The nearest class wins, by the Mahalanobis distance
    with the class's own covariance of the classifier's inputs. Keeps no samples."""

    name = "fecam"
    reference = (
        "Goswami, Liu, Twardowski, van de Weijer: FeCAM: Exploiting the Heterogeneity of Class Distributions in "
        "Exemplar-Free Continual Learning. NeurIPS, 2023"
    )
    settings_from = (
        "Power and shrinkage as published, norms of 1 as in the authors' code. Trained like the other dense methods: "
        "momentum, weight decay and schedule as published were worse on held-out training data."
    )
    settings: FeCAMSettings
    means: Tensor = kept("means", Tensor, on_cpu=True)
    """(classes, d) of the features."""
    covariances: Tensor = kept("covariances", Tensor, on_cpu=True)
    """(classes, d, d) of the transformed features."""
    _inverse: Sequence[Tensor] = ()
    """The inverse correlation matrix of each class, as far as it was needed."""

    def end_task(self, task: Task) -> None:
        h = map_batches(self.features, task.train.x, self.device)
        own = [h[task.train.y.cpu() == number] for number in task.classes]
        self.means = torch.stack([*self.means, *(each.mean(0) for each in own)])
        new = [torch.cov(self._transform(each).T, correction=0) for each in own]
        self.covariances = torch.stack([*self.covariances, *new])
        super().end_task(task)

    def check_state(self, state: Mapping[str, Tensor], input_shape: tuple[int, ...]) -> None:
        classes, size = self.classes[-1].stop, self.count_features(input_shape)
        shapes = {"means": (classes, size), "covariances": (classes, size, size)}
        super().check_state(take_tensors(state, shapes, "class statistics"), input_shape)

    def _transform(self, h: Tensor) -> Tensor:
        return h.clamp_min(0.0) ** self.settings.power

    def predict(self, x: Tensor) -> Tensor:
        """The negative squared Mahalanobis distance to each class, at norm 1."""
        at = F.normalize(self._transform(self.features(x)))
        means = F.normalize(self._transform(self.means)).to(self.device)
        away = [at - mean for mean in means]
        return -torch.stack([(d @ inverse * d).sum(1) for d, inverse in zip(away, self._inverses(), strict=True)], 1)

    def _inverses(self) -> Sequence[Tensor]:
        for covariance in self.covariances[len(self._inverse) :].double():
            mixed = normalize_variances(shrink(covariance, self.settings.diagonal, self.settings.off_diagonal))
            inverse = torch.linalg.pinv(mixed, hermitian=True).float().to(self.device)
            self._inverse = [*self._inverse, inverse]
        return self._inverse

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        super().load_state(state)
        self._inverse = ()
