"""The whole description of a run, and its form as a TOML file."""

import dataclasses
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

from spacenet.config.plain import from_plain, to_plain
from spacenet.config.training import TrainingSettings
from spacenet.data.stream import StreamSettings
from spacenet.errors import SettingsError
from spacenet.methods import get_method
from spacenet.methods.base import MethodSettings
from spacenet.nets import NetSettings


@dataclass(frozen=True)
class RunConfig:
    """Everything that decides the outcome of a run. `options` are the method's own settings."""

    stream: str
    method: str
    seed: int
    data: StreamSettings
    net: NetSettings
    training: TrainingSettings
    options: MethodSettings


def to_toml(config: RunConfig) -> str:
    """The config as TOML; settings that are not set are left out."""
    return tomli_w.dumps(to_plain(config))


def from_mapping(values: Mapping[str, Any]) -> RunConfig:
    """The config that nested mappings describe, as a TOML file or a preset holds them."""
    values = dict(values)
    for key in ("stream", "method"):
        if not isinstance(values.get(key), str):
            raise SettingsError(f"{key}: a configuration needs its name, as text")
    options = values.pop("options", {})
    config = from_plain(RunConfig, {"seed": 0, **_SECTIONS, **values, "options": {}})
    return dataclasses.replace(config, options=from_plain(get_method(config.method).Settings, options))


def read_toml(path: Path) -> dict[str, Any]:
    """The mappings of a TOML file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is not a TOML file: {error}") from error


def merge(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Nested mappings laid over each other, later ones on top."""
    result: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            below = result.get(key)
            result[key] = merge(below, value) if isinstance(below, dict) and isinstance(value, Mapping) else value
    return result


_SECTIONS: dict[str, dict[str, Any]] = {"data": {}, "net": {}, "training": {}}
