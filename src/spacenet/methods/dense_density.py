"""The class statistics of spacenet-density on a dense network: what they reach without the space."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from spacenet.methods.base import Params, Task, kept, map_batches
from spacenet.methods.density.densities import Densities, scores
from spacenet.methods.shared import class_statistics
from spacenet.methods.shared.class_statistics import ClassStatisticsSettings
from spacenet.methods.shared.frozen_features import FrozenFeatures
from spacenet.utils.tensors import section


@dataclass(frozen=True)
class DenseDensitySettings(ClassStatisticsSettings):
    """What is kept of each class."""


class DenseDensity(FrozenFeatures):
    """A dense network is trained on the first task and then frozen. The class with the largest density wins; features
    and densities are those of spacenet-density with `representation` features and `network_weight` 0. A control: it
    shows what the statistics reach on features that were learned with the whole network. Keeps no samples."""

    name = "dense-density"
    reference = "Goswami et al.: FeCAM. NeurIPS, 2023, with the statistics of spacenet-density"
    settings_from = "As in spacenet-density; the stream's own training."
    settings: DenseDensitySettings
    densities: Densities = kept("density", on_cpu=True)

    def setup(self) -> None:
        super().setup()
        self.densities = self.settings.build_densities(whiten=True)

    def end_task(self, task: Task) -> None:
        h = map_batches(self.represent, task.train.x, self.device)
        self.densities.add(h, task.train.y.cpu(), task.classes, self.rng(class_statistics.SEED, task.index))
        super().end_task(task)

    def check_state(self, state: Mapping[str, Tensor], input_shape: tuple[int, ...]) -> None:
        size = self.represent(torch.zeros(0, *input_shape)).shape[1]
        self.densities.check(section(state, "density"), self.classes[-1].stop, size)
        rest = {name: tensor for name, tensor in state.items() if not name.startswith("density/")}
        super().check_state(rest, input_shape)

    def represent(self, x: Tensor) -> Tensor:
        """The features that class statistics are computed on, (n, d)."""
        with torch.no_grad():
            return class_statistics.extract_features(self.blueprint, self.params, x)

    @cached_property
    def density_params(self) -> Params:
        return {name: tensor.to(self.device) for name, tensor in self.densities.compute_params().items()}

    def predict(self, x: Tensor) -> Tensor:
        return scores(self.density_params, self.represent(x))
