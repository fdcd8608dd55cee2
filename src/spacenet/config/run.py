"""The configuration of a run: a stream and a model. Its form as a TOML file."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import tomli_w

from spacenet.config.model import SECTIONS, ModelConfig
from spacenet.config.settings import Settings, check_section, from_plain, to_plain
from spacenet.config.stream import StreamConfig
from spacenet.errors import SettingsError


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


def read_toml(path: Path) -> dict[str, Any]:
    """The mappings of a TOML file."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # also a number with too many digits
        raise SettingsError(f"{path} is not a TOML file: {error}") from error
    check_sections(values)
    return values


def check_sections(values: Mapping[str, Any]) -> None:
    """Raise `SettingsError` unless sections are mappings, and what they name is named by a text."""
    for section in ("stream", *SECTIONS, "method", "methods"):
        held = values.get(section, {})
        check_section(f"[{section}]", held)
        if not isinstance(held.get("name", ""), str):
            raise SettingsError(f"[{section}]: name must be text")
