"""Command lines on a run's stream: `spacenet run …` that repeats it, `spacenet compare …` for other methods."""

import dataclasses
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

from spacenet.config.presets import preset_config, preset_names
from spacenet.config.run import RunConfig
from spacenet.registry import STREAMS


def run_command(config: RunConfig, seeds: int = 1) -> str | None:
    """The shortest such line over the stream's presets; None if the data was given in Python."""
    if not has_name(config):
        return None
    _, *others = preset_names(config.stream.name)
    # A preset that is named like the network is chosen by --preset, so that it does not matter what --net alone does.
    presets = others if config.model.net.name in others else [None, *others]
    lines = [_arguments(config, preset) for preset in presets]
    more = ["--seeds", str(seeds)] if seeds > 1 else []
    return shlex.join(["spacenet", "run", *min(lines, key=len), *more])


def compare_command(config: RunConfig, methods: Sequence[str]) -> str | None:
    """The line that compares these methods on the run's stream; None if the data was given in Python."""
    if not has_name(config):
        return None
    stream, default = config.stream, preset_config(config.stream.name, config.model.method)
    words = [str(stream.data or stream.name), "--methods", ",".join(methods)]
    if default.model.net.name != config.model.net.name:
        words += ["--net", config.model.net.name]
    return shlex.join(["spacenet", "compare", *words, *_differences(stream, default.stream)])


def has_name(config: RunConfig) -> bool:
    """Whether the stream can be named in a command line: one that is registered, or data in a file."""
    return config.stream.data is not None or config.stream.name in STREAMS


def _arguments(config: RunConfig, preset: str | None) -> list[str]:
    stream, model = config.stream, config.model
    words = [str(stream.data or stream.name), "--method", model.method]
    if preset is not None:
        words += ["--preset", preset]
    default = preset_config(stream.name, model.method, preset=preset)
    if default.model.net.name != model.net.name:
        default = preset_config(stream.name, model.method, {"net": {"name": model.net.name}}, preset=preset)
        words += ["--net", model.net.name]
    if model.seed != default.model.seed:
        words += ["--seed", str(model.seed)]
    words += _differences(stream, default.stream)
    for section in ("net", "training", "preprocessing", "method_settings"):
        words += _differences(getattr(model, section), getattr(default.model, section))
    return words


def _differences(settings: Any, default: Any) -> Iterator[str]:
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if field.name in ("name", "data") or value == getattr(default, field.name):
            continue
        flag = field.name.replace("_", "-")
        if isinstance(value, bool):
            yield f"--{flag}" if value else f"--no-{flag}"
        else:
            yield f"--{flag}"
            yield from map(_word, value if isinstance(value, tuple) else (value,))


def _word(value: object) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
