"""The whole description of a run, and its form as a TOML file."""

import dataclasses
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dacite
import tomli_w

from spacenet.errors import SettingsError
from spacenet.methods import method_named
from spacenet.methods.base import MethodSettings
from spacenet.nets import NetSettings
from spacenet.streams.stream import StreamSettings
from spacenet.training.settings import TrainingSettings


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
    return tomli_w.dumps(_plain(dataclasses.asdict(config)))


def from_mapping(values: Mapping[str, Any]) -> RunConfig:
    """The config that nested mappings describe, as a TOML file or a preset holds them."""
    values = dict(values)
    for key in ("stream", "method"):
        if not isinstance(values.get(key), str):
            raise SettingsError(f"{key}: a configuration needs its name, as text")
    options = values.pop("options", {})
    try:
        config = dacite.from_dict(RunConfig, {"seed": 0, **_SECTIONS, **values, "options": {}}, _STRICT)
        chosen = dacite.from_dict(method_named(config.method).Settings, options, _STRICT)
    except dacite.DaciteError as error:
        raise SettingsError(f"configuration: {error}") from error
    return dataclasses.replace(config, options=chosen)


def read_toml(path: Path) -> dict[str, Any]:
    """The mappings of a TOML file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is not a TOML file: {error}") from error


def merged(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Nested mappings laid over each other, later ones on top."""
    result: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            below = result.get(key)
            result[key] = merged(below, value) if isinstance(below, dict) and isinstance(value, Mapping) else value
    return result


_SECTIONS: dict[str, dict[str, Any]] = {"data": {}, "net": {}, "training": {}}


def _number(value: Any) -> Any:
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _several(value: Any) -> Any:
    return tuple(map(_number, value)) if isinstance(value, list) else (_number(value),)


_STRICT = dacite.Config(
    strict=True,
    cast=[Path],
    type_hooks={
        float: _number,
        tuple[float, ...]: _several,
        tuple[int, ...]: lambda v: tuple(v) if isinstance(v, list) else (v,),
    },
)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items() if item is not None}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value
