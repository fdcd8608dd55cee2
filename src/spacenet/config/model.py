"""The configuration of a model: what a run, a model file and the estimator share."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Self

from annotated_types import Ge, Gt, Le

from spacenet.config.settings import WIDE, Settings, check_section, field_types, from_plain, to_plain
from spacenet.config.training import TrainingConfig
from spacenet.errors import SettingsError
from spacenet.registry import METHODS, unknown


@dataclass(frozen=True)
class MethodSettings(Settings):
    """Settings that only one method has. Each method declares its own."""

    def for_tasks(self, tasks: int) -> Self:
        """These settings for a stream with this many tasks."""
        return self


AUTO = "auto"
"""The name of a network that follows from the shape of samples."""
Value = Annotated[float, Ge(-1e15), Le(1e15)]
Spread = Annotated[float, Ge(1e-30), Le(1e15)]
"""Squares of larger numbers, added up over a sample, would not fit into 32 bits."""


@dataclass(frozen=True)
class NetConfig(Settings):
    """The network."""

    name: str = "mlp"
    """Architecture: mlp, small-cnn, resnet-18, wrn-DEPTH-WIDTH (e.g. wrn-28-10), a registered one, or auto: small-cnn
    for images with channels, otherwise mlp."""
    hidden: tuple[Annotated[int, Ge(1), Le(WIDE)], ...] = ()
    """Units of each hidden layer (mlp, small-cnn; of a wrn the stem and the three groups); default 400 400, or 32 32 64
    64 512, or as its name says."""
    init: Literal["module", "glorot"] = "module"
    """Initial weights of new connections, where the network is a module of your own: distributed as the module's are,
    or Glorot-uniform as in the paper. The networks of this package are always Glorot-uniform."""
    graph: str = ""
    """What a module of your own computes, as found when it was traced. Written by spacenet."""


@dataclass(frozen=True)
class PreprocessingConfig(Settings):
    """What is done to raw inputs, (x · scale − mean) / std. What is None follows from the data and its first task."""

    scale: Value | None = None
    """Factor that brings raw values to about 0…1; default 1/255 for bytes, else 1."""
    mean: Value | tuple[Value, ...] | None = None
    """Mean of the scaled values: one number, or one per channel of images."""
    std: Spread | tuple[Spread, ...] | None = None
    """Standard deviation of the scaled values, likewise."""
    standardize: Literal["all", "channels", "features"] | None = None
    """Which values share a mean and a standard deviation: all, those of a channel of images, or those of one feature.
    Default: features for tables, channels for images (c, h, w), otherwise all; all where mean or std is given."""
    centering: Annotated[float, Ge(0), Le(1)] | None = None
    """What is subtracted from images: 0 for the mean above, 1 for the first task's mean of each pixel, in between a
    mixture. Default: what the stream's preset says, otherwise 0.5."""
    clip: Annotated[float, Gt(0)] | None = None
    """Largest magnitude of normalized values; larger ones are cut off. Default: 10 for tables, otherwise none."""
    encoder: str | None = None
    """Frozen pretrained network that turns images, texts or sounds into features, on which the model learns:
    efficientnet-lite0, efficientnet-lite2, all-minilm-l6-v2 (texts), speech-embedding (sounds), timm:NAME,
    torchvision:NAME, or a file (.onnx, .pt2)."""
    encoder_checksum: str | None = None
    """The SHA-256 of the encoder's weights. Written by spacenet."""
    encoder_version: str | None = None
    """The version of the encoder's package. Written by spacenet."""
    root: bool | None = None
    """Take square roots of the magnitudes of scaled values, which makes features that are never negative closer to
    Gaussian. Default: only for features of an encoder."""

    def validate(self) -> None:
        if self.scale is not None and self.scale == 0:
            raise SettingsError("0 would make all inputs equal", setting="scale")


@dataclass(frozen=True)
class ModelConfig(Settings):
    """Everything that decides what a model becomes, apart from its data."""

    method: str = "spacenet"
    net: NetConfig = field(default_factory=NetConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    preprocessing: PreprocessingConfig = field(default_factory=PreprocessingConfig)
    method_settings: MethodSettings = field(default_factory=MethodSettings)
    seed: Annotated[int, Ge(0)] = 0

    def __post_init__(self) -> None:
        if type(self.method_settings) is MethodSettings:  # the defaults of the method
            object.__setattr__(self, "method_settings", settings_type(self.method)())
        super().__post_init__()

    @classmethod
    def from_plain(cls, values: Mapping[str, Any]) -> "ModelConfig":
        """The configuration that nested mappings describe, as TOML, JSON and presets hold them."""
        sections = dict(values)
        method, seed = sections.pop("method", {}), sections.pop("seed", 0)
        check_section("[method]", method)
        name = method.get("name", cls.method)
        if not isinstance(name, str):
            raise SettingsError("[method]: name must be text")
        own = {key: value for key, value in method.items() if key != "name"}
        parts: dict[str, Any] = {
            section: from_plain(kind, sections.pop(section, {}), f"[{section}]") for section, kind in SECTIONS.items()
        }
        parts["method_settings"] = from_plain(settings_type(name), own, f"[method] of {name}")
        if sections:
            raise unknown("section", next(iter(sections)), ["method", *SECTIONS, "stream", "seed"])
        return cls(name, seed=seed, **parts)

    def to_plain(self) -> dict[str, Any]:
        """The same as nested mappings: seed, [method] with its name, [net], [training], [preprocessing]."""
        sections = {name: to_plain(getattr(self, name)) for name in SECTIONS}
        return {"seed": self.seed, "method": {"name": self.method, **to_plain(self.method_settings)}, **sections}

    def replace(self, **settings: Any) -> "ModelConfig":
        """The same with other values for some settings, each given by its own name: `replace(epochs=3)`."""
        changed: dict[str, Any] = {}
        for section, values in sort_into_sections(self.method, settings).items():
            name = "method_settings" if section == "method" else section
            changed[name] = dataclasses.replace(getattr(self, name), **values)
        return dataclasses.replace(self, **changed)

    def flat(self) -> dict[str, Any]:
        """All settings by their own names, apart from method, net and seed."""
        groups = (self.training, self.preprocessing, self.method_settings)
        found = {f.name: getattr(group, f.name) for group in groups for f in dataclasses.fields(group)}
        return {"hidden": self.net.hidden, "init": self.net.init, **found}


SECTIONS: dict[str, type[Settings]] = {
    "net": NetConfig,
    "training": TrainingConfig,
    "preprocessing": PreprocessingConfig,
}


def settings_type(method: str) -> type[MethodSettings]:
    """The settings that a method declares."""
    found: type[MethodSettings] = METHODS[method].Settings
    return found


def settings_of(method: str) -> dict[str, str]:
    """The names of all settings that a method has, with the section that each belongs to."""
    kinds = {**SECTIONS, "method": settings_type(method)}
    return {name: section for section, kind in kinds.items() for name in field_types(kind) if name != "name"}


def sort_into_sections(method: str, settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Settings given by their own names, by the section that each belongs to."""
    places, found = settings_of(method), dict[str, dict[str, Any]]()
    for name, value in settings.items():
        if name not in places:
            raise unknown_setting(name, [method], places)
        found.setdefault(places[name], {})[name] = value
    return found


def nest_settings(method: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of one method by section, where some are given by section already and others by their own names."""
    by_section = {name: value for name, value in settings.items() if name in ("method", "stream", "seed", *SECTIONS)}
    named = {name: value for name, value in settings.items() if name not in by_section}
    return merge(by_section, sort_into_sections(method, named))


def unknown_setting(name: str, methods: Sequence[str], choices: Iterable[str]) -> SettingsError:
    """The error for a name that is no setting of these methods; it may be one of others."""
    whose = ", ".join(methods) if len(methods) <= 4 else "these methods"
    if owners := methods_with(name):
        return SettingsError(f"{name!r} is a setting of {', '.join(owners)}, not of {whose}")
    return unknown(f"setting of {whose}", name, choices)


def methods_with(setting: str) -> list[str]:
    """The methods that have a setting of this name. All methods are imported for it."""
    return [method for method in METHODS if setting in settings_of(method)]


def merge(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Nested mappings laid over each other, later ones on top."""
    result: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            below = result.get(key)
            result[key] = merge(below, value) if isinstance(below, dict) and isinstance(value, Mapping) else value
    return result
