"""SpaceNet with class statistics, which decide between the tasks.

SpaceNet rarely confuses classes of the same task; most of its errors are between tasks, because their classifiers were
never trained together. The statistics of a class are a few Gaussians on a representation that later tasks cannot
change: the edges of small images, or the features of the network after its first task. So the densities of classes of
different tasks are comparable, those of old classes never change by a bit, and no samples are kept.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar

import torch
from annotated_types import Ge, Gt, Le
from torch import Tensor

from spacenet.errors import SettingsError
from spacenet.methods.base import Params, Task, Uniform, kept, map_batches
from spacenet.methods.density.densities import ClassMemory, Densities, combine, scores
from spacenet.methods.shared import class_statistics
from spacenet.methods.shared.class_statistics import ClassStatisticsSettings, Representation
from spacenet.methods.shared.sparse import AdaptiveMethod, AdaptiveSettings
from spacenet.space.ledger import as_of, check_unit_values, unit_values
from spacenet.space.pack import Pack, pack
from spacenet.utils.tensors import check_sections, in_section, section

SHARPNESS, TABLE_SHARPNESS = 0.15, 0.5


@dataclass(frozen=True)
class DensitySettings(ClassStatisticsSettings, AdaptiveSettings):
    """How much of the network a task may use, how many connections are rewired, and what is kept of each class."""

    representation: Representation = "auto"
    """What class statistics are computed on: the inputs, the edges of images, or features, those of the network after
    its first task; auto is features for convolutional networks, edges for other images, otherwise inputs."""
    sharpness: Annotated[float, Gt(0), Le(1e6)] | None = None
    """Factor of the log-densities, because features are less independent than the Gaussians assume. Default: 0.5 for
    tables of up to 300 columns, otherwise 0.15."""
    network_weight: Annotated[float, Ge(0), Le(1e6)] = 0.25
    """Factor of the network's scores, which are added to the densities within a task."""

    def validate(self) -> None:
        super().validate()
        if self.balance != "none":
            message = "class densities, not scores, decide between tasks in spacenet-density; it must be none"
            raise SettingsError(message, setting="balance")


class SpaceNetDensity(AdaptiveMethod):
    """SpaceNet with class statistics, which decide between the tasks. Keeps no samples."""

    name = "spacenet-density"
    reference = "SpaceNet and, for densities on frozen features, Goswami et al.: FeCAM. NeurIPS, 2023"
    settings_from = "Searched on held-out training data."
    settings: DensitySettings
    densities: Densities = kept("density", on_cpu=True)
    first_units: dict[str, Tensor] = kept("view", dict, on_cpu=True)
    """The parameters of the network's units after the first task, where features are used."""
    search_space: ClassVar = {
        "method.shrinkage": Uniform(0.02, 0.95),
        "method.directions": Uniform(4, 40, integer=True),
        "method.sharpness": Uniform(0.02, 1.0, log=True),
        "method.network_weight": Uniform(0.0, 1.0),
    }

    def setup(self) -> None:
        super().setup()
        kind = self.settings.representation
        self.uses_features = kind == "features" or (kind == "auto" and self.blueprint.convolves)
        self.densities = self.settings.build_densities(whiten=self.uses_features)
        self.sharpness = SHARPNESS if self.settings.sharpness is None else self.settings.sharpness

    def check_inputs(self, shape: tuple[int, ...]) -> None:
        kind = self._representation(shape)
        self.settings.suit(self.densities, shape, kind)
        if self.settings.sharpness is None:
            self.sharpness = TABLE_SHARPNESS if class_statistics.is_table(shape, kind) else SHARPNESS
        super().check_inputs(shape)

    def _representation(self, shape: tuple[int, ...]) -> Representation:
        kind: Representation = "features" if self.uses_features else self.settings.representation
        return class_statistics.resolve_representation(kind, shape)

    def end_task(self, task: Task) -> None:
        super().end_task(task)
        if self.uses_features and not self.first_units:
            self.first_units = unit_values(self.ledger)
        h = map_batches(self.represent, task.train.x, self.device)
        rng = self.rng(class_statistics.SEED, task.index)
        self.densities.add(h, task.train.y.cpu(), task.classes, rng)

    def represent(self, x: Tensor) -> Tensor:
        """The representation of samples that class statistics are computed on, (n, d)."""
        return self._represent(self._first_params, x)

    def _represent(self, first_params: Params, x: Tensor) -> Tensor:
        if self.uses_features:
            return class_statistics.extract_features(self.blueprint, first_params, x)
        return class_statistics.FIXED[self._representation(tuple(x.shape[1:]))](x)

    @cached_property
    def _first_params(self) -> Params:
        """The parameters of the network after the first task, where features are used."""
        return pack(as_of(self.ledger, 1, self.first_units), self.device).params if self.first_units else {}

    @cached_property
    def predictor(self) -> Pack:
        return self._predict_with(self.densities)

    def truncate(self, directions: int) -> Pack:
        return self._predict_with(self.densities.truncate(directions))

    def _predict_with(self, densities: Densities) -> Pack:
        network, settings, sharpness = self.pack, self.settings, self.sharpness
        tasks = self.classes[: self.tasks_learned]
        uses_network = settings.network_weight > 0
        params = in_section("network", network.params) if uses_network else {}
        params |= in_section("view", self._first_params)
        params |= in_section("density", {name: t.to(self.device) for name, t in densities.compute_params().items()})

        def forward(params: Params, x: Tensor) -> Tensor:
            h = self._represent(section(params, "view") if self.first_units else {}, x)
            fit = scores(section(params, "density"), h)
            logits = network.forward(section(params, "network"), x) if uses_network else None
            return combine(fit, logits, tasks, sharpness, settings.network_weight)

        return Pack(forward, params)

    def class_memory(self, input_shape: tuple[int, ...]) -> ClassMemory | None:
        units = sum(tensor.nbytes for tensor in self.first_units.values())
        return self.densities.class_memory(self._representation(input_shape), units)

    def check_extra(self, extra: Mapping[str, Tensor], input_shape: tuple[int, ...]) -> None:
        check_sections(extra, "density", *(["view"] if self.uses_features else []))
        first_params: Params = {}
        if self.uses_features:
            units = section(extra, "view")
            check_unit_values(self.ledger, 1, len(self.classes[0]), units)
            first_params = pack(as_of(self.ledger, 1, units)).params
        empty = self._represent(first_params, torch.zeros(0, *input_shape))  # has the dimension, and needs no memory
        self.densities.check(section(extra, "density"), sum(map(len, self.classes)), empty.shape[1])
