"""The configuration of a run: a stream and a model. Its form as a TOML file."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import tomli_w

from spacenet.config.model import SECTIONS, ModelConfig, nest_settings, settings_type, unknown_setting
from spacenet.config.settings import Settings, check_section, check_value, field_types, from_plain, to_plain
from spacenet.config.stream import StreamConfig
from spacenet.errors import SettingsError
from spacenet.registry import unknown

METHODS_SECTION = "methods"
"""The section of a TOML file with settings of single methods: [methods.ewc], for a comparison."""


@dataclass(frozen=True)
class RunConfig(Settings):
    """Everything that decides the outcome of a run."""

    stream: StreamConfig = field(default_factory=StreamConfig)
    model: ModelConfig = field(default_factory=ModelConfig)

    @classmethod
    def from_plain(cls, values: Mapping[str, Any]) -> "RunConfig":
        """The configuration that nested mappings describe, as a TOML file or a preset holds them."""
        sections = dict(values)
        stream = from_plain(StreamConfig, sections.pop("stream", {}), "[stream]")
        return cls(stream, ModelConfig.from_plain(sections))

    def to_plain(self) -> dict[str, Any]:
        """The same as nested mappings."""
        return {"stream": to_plain(self.stream), **self.model.to_plain()}

    def to_toml(self) -> str:
        """The same as TOML; settings that are None are left out."""
        return tomli_w.dumps({"seed": self.model.seed, **self.to_plain()})

    def with_seed(self, seed: int) -> "RunConfig":
        """The same run with another seed."""
        return replace(self, model=replace(self.model, seed=seed))


def read_toml(path: Path, method: str | None = None) -> dict[str, Any]:
    """The mappings of a TOML file. Mistakes in it are named with the file, the section and the setting.

    `method` is the one that [method] belongs to where the file does not name one.
    """
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # also a number with too many digits
        raise SettingsError(f"{path} is not a TOML file: {error}") from error
    try:
        check_sections(values)
        check_settings(values, method)
    except SettingsError as error:
        raise SettingsError(f"{path}: {error}") from error
    return values


def check_sections(values: Mapping[str, Any]) -> None:
    """Raise `SettingsError` unless sections are mappings, and what they name is named by a text."""
    for section in ("stream", *SECTIONS, "method", METHODS_SECTION):
        held = values.get(section, {})
        check_section(f"[{section}]", held)
        if not isinstance(held.get("name", ""), str):
            raise SettingsError(f"[{section}]: name must be text")


def check_settings(values: Mapping[str, Any], method: str | None = None, prefix: str = "") -> None:
    """Raise `SettingsError` for a section or a setting that does not exist, and for a value that it cannot have."""
    kinds: dict[str, type[Settings]] = {"stream": StreamConfig, **SECTIONS}
    for section, held in values.items():
        label = f"[{prefix}{section}]"
        if section == "seed":
            check_value(section, field_types(ModelConfig)[section], held)
        elif section == METHODS_SECTION:
            for name, own in held.items():
                check_section(f"[{section}.{name}]", own)
                check_settings(nest_settings(name, own), name, f"{section}.{name}.")
        elif section in kinds:
            _check_section(label, kinds[section], held)
        elif section != "method":
            raise unknown("section", section, [*kinds, "method", METHODS_SECTION, "seed"])
        elif (name := held.get("name", method)) is not None:
            own = {key: value for key, value in held.items() if key != "name"}
            _check_section(label, settings_type(name), own, name)


def _check_section(label: str, kind: type[Settings], values: Any, method: str | None = None) -> None:
    check_section(label, values)
    known = field_types(kind)
    for name, value in values.items():
        if name not in known:
            other = unknown("setting", name, known) if method is None else unknown_setting(name, [method], known)
            raise SettingsError(f"{label}: {other}")
        try:
            check_value(name, known[name], value)
        except SettingsError as error:
            raise SettingsError(f"{label}: {error}") from error
