"""Settings as plain values, for TOML and JSON, and back."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import dacite

from spacenet.errors import SettingsError

T = TypeVar("T")


def to_plain(value: Any) -> Any:
    """Dataclasses, tuples and paths as mappings, lists and texts; what is not set is left out."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return to_plain(dataclasses.asdict(value))
    if isinstance(value, Mapping):
        return {key: to_plain(item) for key, item in value.items() if item is not None}
    if isinstance(value, (list, tuple)):
        return [to_plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def from_plain(kind: type[T], values: Mapping[str, Any]) -> T:
    """The settings of a kind that a mapping describes; a name or a type that does not belong there is an error."""
    try:
        return dacite.from_dict(kind, values, _STRICT)
    except (dacite.DaciteError, TypeError) as error:
        raise SettingsError(f"configuration: {error}") from error


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
