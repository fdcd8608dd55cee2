"""SpaceNet that knows where an input belongs: beside the network it keeps a small summary of every class.

Within a task SpaceNet errs seldom; what costs it is telling the tasks apart, for their classifiers never met. A class's
summary is a few Gaussians on a representation that later tasks cannot change: the edges of small images, or what the
network answered right after its first task. So densities of classes of different tasks can be compared, old ones
never change by a bit, and no sample is kept.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from spacenet.config.ranges import Range, Uniform
from spacenet.data.stream import Task
from spacenet.errors import SettingsError
from spacenet.methods.base import MethodSettings, map_batches
from spacenet.methods.density import discriminant
from spacenet.methods.density.combination import combined
from spacenet.methods.density.densities import ClassMemory, Densities
from spacenet.methods.shared.class_statistics import FIXED, Kind, SummarySettings, features, fixed_kind, new_densities
from spacenet.methods.shared.sparse import AdaptiveMethod
from spacenet.methods.shared.sparse_settings import AdaptiveSettings
from spacenet.space.blueprint import CPU, Blueprint, Params
from spacenet.space.pack import Pack, pack
from spacenet.space.view import as_of, check_unit_values, unit_values
from spacenet.utils.seeding import generator
from spacenet.utils.tensors import check_sections, in_section, section


@dataclass(frozen=True)
class DensitySettings(SummarySettings, AdaptiveSettings):
    """How much of the network a task may use, how much its connections move, and what is kept of each class."""

    representation: Kind = "auto"
    """What classes are described on: inputs as they are, edges of images, or features, which are what the network
    answers after its first task; auto takes features of convolutional networks, edges of images, otherwise inputs."""
    sharpness: float = 0.15
    """What the densities' logarithms count: features are not as independent of each other as a Gaussian has it."""
    network_weight: float = 0.25
    """What the network's scores count beside that, within a task."""

    def __post_init__(self) -> None:
        SummarySettings.__post_init__(self)
        AdaptiveSettings.__post_init__(self)
        if self.balance != "none":
            raise SettingsError(
                "balance: in spacenet-density densities tell the tasks apart, not scores; leave it at none"
            )
        for name in ("sharpness", "network_weight"):
            value = getattr(self, name)
            if not 0.0 <= value < float("inf") or (name == "sharpness" and value == 0):
                require_extra = "more than 0" if name == "sharpness" else "0 or more"
                raise SettingsError(f"{name.replace('_', '-')}: {value} is out of range (need {require_extra})")


class SpaceNetDensity(AdaptiveMethod):
    """SpaceNet, with a summary of each class that says where an input belongs. Keeps no samples."""

    name = "spacenet-density"
    reference = "SpaceNet and, for densities on frozen features, Goswami et al.: FeCAM. NeurIPS, 2023"
    settings_from = "Searched on held-out training data."
    Settings = DensitySettings
    settings: DensitySettings
    search_space: ClassVar[Mapping[str, Range]] = {
        "method.shrinkage": Uniform(0.2, 0.95),
        "method.directions": Uniform(4, 40, integer=True),
        "method.sharpness": Uniform(0.02, 1.0, log=True),
        "method.network_weight": Uniform(0.0, 1.0),
    }

    def __init__(self, blueprint: Blueprint, settings: MethodSettings, seed: int, device: torch.device = CPU) -> None:
        super().__init__(blueprint, settings, seed, device)
        self.densities = new_densities(self.settings, whiten=self._learns_features())
        self.units: dict[str, Tensor] = {}
        """The values of the network's units after the first task, where features are looked at as they were then."""
        self._view: Pack | None = None

    def _learns_features(self) -> bool:
        kind = self.settings.representation
        return kind == "features" or (kind == "auto" and self.blueprint.convolves)

    def check_inputs(self, shape: tuple[int, ...]) -> None:
        self._kind(shape)
        super().check_inputs(shape)

    def _kind(self, shape: tuple[int, ...]) -> Kind:
        """What classes are described on, for samples of this shape."""
        return "features" if self._learns_features() else fixed_kind(self.settings.representation, shape)

    def end_task(self, task: Task) -> None:
        super().end_task(task)
        if self._learns_features() and not self.units:
            self.units = unit_values(self.ledger)
        view = self._seen()
        with torch.no_grad():
            h = map_batches(lambda x: self._represent(view, x), task.train.x, self.device)
        rng = generator(self.seed, "summaries", task.index)
        self.densities.add(h, task.train.y.cpu(), task.classes, rng)

    def _seen(self) -> Params:
        """The values of the network as it stood after the first task."""
        if not self.units:
            return {}
        if self._view is None:
            self._view = pack(as_of(self.ledger, 1, self.units), self.device)
        return self._view.params

    def _represent(self, view: Params, x: Tensor) -> Tensor:
        if self._learns_features():
            return features(self.blueprint, self.blueprint.forward, view, x)
        return FIXED[self._kind(tuple(x.shape[1:]))](x)

    def predictor(self) -> Pack:
        return self._comparing(self.densities)

    def truncate(self, directions: int) -> Pack:
        return self._comparing(self.densities.truncate(directions))

    def _comparing(self, summaries: Densities) -> Pack:
        """The network, and beside it these summaries."""
        network, known, settings = self.packed(), summaries.values(), self.settings
        tasks = self.classes[: self.tasks_learned]
        counts = settings.network_weight > 0
        values = in_section("network", network.params if counts else {}) | in_section("view", self._seen())
        values |= in_section("density", {name: value.to(self.device) for name, value in known.items()})

        def forward(values: Params, x: Tensor) -> Tensor:
            h = self._represent(section(values, "view") if self.units else {}, x)
            fit = discriminant.scores(section(values, "density"), h)
            answer = network.forward(section(values, "network"), x) if counts else None
            return combined(fit, answer, tasks, settings.sharpness, settings.network_weight)

        return Pack(forward, values)

    def extra(self) -> dict[str, Tensor]:
        return {**in_section("density", self.densities.tensors()), **in_section("view", self.units)}

    def check_extra(self, extra: Mapping[str, Tensor], input_shape: tuple[int, ...]) -> None:
        check_sections(extra, "density", *(["view"] if self._learns_features() else []))
        view: Params = {}
        if self._learns_features():
            units = section(extra, "view")
            check_unit_values(self.ledger, 1, len(self.classes[0]), units)
            view = pack(as_of(self.ledger, 1, units)).params
        none = self._represent(view, torch.zeros(0, *input_shape))  # shows the dimension, and costs no memory
        self.densities.check(section(extra, "density"), sum(map(len, self.classes)), none.shape[1])

    def class_memory(self, input_shape: tuple[int, ...]) -> ClassMemory | None:
        return self.densities.kept(self._kind(input_shape), sum(values.nbytes for values in self.units.values()))

    def load_model(self, tensors: Mapping[str, Tensor]) -> None:
        super().load_model(tensors)
        self.densities.load(section(tensors, "density"))
        self.units, self._view = {key: values.clone() for key, values in section(tensors, "view").items()}, None
