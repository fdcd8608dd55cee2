"""The line that repeats a run: `spacenet run …` with what differs from the preset, and nothing else."""

import dataclasses
import shlex
from collections.abc import Iterator
from typing import Any

from spacenet.config.presets import BENCHMARKS, preset
from spacenet.config.run import RunConfig
from spacenet.data.streams import NPZ

SECTIONS = ("data", "net", "training", "options")


def run_command(config: RunConfig, seeds: int = 1) -> str:
    """The shortest such line, over the experiments that the stream has presets for."""
    first, *others = BENCHMARKS.get(config.stream, {"": None})
    lines = [_arguments(config, None if preset_name == first else preset_name) for preset_name in (first, *others)]
    more = ["--seeds", str(seeds)] if seeds > 1 else []
    return shlex.join(["spacenet", "run", *min(lines, key=len), *more])


def _arguments(config: RunConfig, preset_name: str | None) -> list[str]:
    default = preset(config.stream, config.method, preset_name=preset_name)
    words = [] if config.stream == NPZ else [config.stream]  # first: a list of numbers would swallow it
    words += ["--method", config.method]
    if preset_name is not None:
        words += ["--preset", preset_name]
    if default.net.net != config.net.net:
        # As the command line does it: another network's name brings its own preset along.
        own = (
            config.net.net
            if preset_name is None and config.net.net in BENCHMARKS.get(config.stream, {})
            else preset_name
        )
        default = preset(config.stream, config.method, {"net": {"net": config.net.net}}, preset_name=own)
        words += ["--net", config.net.net]
    if config.seed != default.seed:
        words += ["--seed", str(config.seed)]
    for section in SECTIONS:
        words += _differing(getattr(config, section), getattr(default, section))
    return words


def _differing(settings: Any, default: Any) -> Iterator[str]:
    for field in dataclasses.fields(settings):
        value, usual = getattr(settings, field.name), getattr(default, field.name)
        if value == usual:
            continue
        name = field.name.replace("_", "-")
        if isinstance(value, bool):
            yield f"--{name}" if value else f"--no-{name}"
        else:
            yield f"--{name}"
            yield from map(_word, value if isinstance(value, tuple) else (value,))


def _word(value: object) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
