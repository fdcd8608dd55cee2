"""A few Gaussians for each class: the class statistics of spacenet-density without its network."""

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from spacenet.methods.base import NETWORK, Task, kept
from spacenet.methods.density.densities import ClassMemory, Densities, scores
from spacenet.methods.shared import class_statistics
from spacenet.methods.shared.class_statistics import ClassStatisticsSettings, UntrainedMethod, UntrainedSettings
from spacenet.space.pack import Pack
from spacenet.utils.tensors import section


@dataclass(frozen=True)
class GaussianSettings(ClassStatisticsSettings, UntrainedSettings):
    """What is kept of each class, and on which representation."""


class Gaussian(UntrainedMethod):
    """The class with the largest density wins. Densities are those of spacenet-density; no network is used. Keeps no
    samples."""

    name = "gaussian"
    reference = (
        "For one generative model per class, van de Ven, Li, Tolias: Class-Incremental Learning with Generative "
        "Classifiers. CVPR Workshops, 2021 (with variational autoencoders; here, a few Gaussians of low rank)"
    )
    settings_from = "As in spacenet-density: searched on held-out training data."
    settings: GaussianSettings
    densities: Densities = kept("network", on_cpu=True)
    scores = staticmethod(scores)

    def setup(self) -> None:
        super().setup()
        self.densities = self.settings.build_densities(whiten=False)

    def check_inputs(self, shape: tuple[int, ...]) -> None:
        kind = class_statistics.resolve_representation(self.settings.representation, shape)
        self.densities = self.settings.suit(self.densities, shape, kind)

    def add_classes(self, h: Tensor, y: Tensor, task: Task) -> None:
        self.densities.add(h, y, task.classes, self.rng(class_statistics.SEED, task.index))

    def keep_classes(self, kept: Tensor) -> None:
        self.densities.keep(kept)

    def check_state(self, state: Mapping[str, Tensor], input_shape: tuple[int, ...]) -> None:
        size = self.count_features(input_shape)
        self.densities.check(section(state, "network"), self.classes[-1].stop, size)
        super().check_state({name: t for name, t in state.items() if not name.startswith(NETWORK)}, input_shape)

    def compute_params(self) -> dict[str, Tensor]:
        return self.densities.compute_params()

    def class_memory(self, input_shape: tuple[int, ...]) -> ClassMemory | None:
        kind = class_statistics.resolve_representation(self.settings.representation, input_shape)
        return self.densities.class_memory(kind, 0)

    def truncate(self, directions: int) -> Pack:
        return self.predict_with(self.densities.truncate(directions).compute_params())
