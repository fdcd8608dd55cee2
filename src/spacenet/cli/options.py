"""What the commands share in reading what the user typed."""

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tyro

from spacenet.config.presets import BENCHMARKS
from spacenet.data.sources import DATA_VARIABLE
from spacenet.data.stream import StreamConfig
from spacenet.data.streams import NPZ, STREAMS

MARKERS = (tyro.conf.OmitArgPrefixes, tyro.conf.FlagCreatePairsOff)


def peek(arguments: Sequence[str], option: str) -> str | None:
    """The value of an option that decides which others there are."""
    for argument, following in zip(arguments, [*arguments[1:], ""], strict=True):
        if argument == f"--{option}":
            return following
        if argument.startswith(f"--{option}="):
            return argument.split("=", 1)[1]
    return None


def stream_of(arguments: Sequence[str], otherwise: str = "split-digits") -> str:
    """The stream that is asked for."""
    named = next((argument for argument in arguments if argument in STREAMS), None)
    return NPZ if peek(arguments, "npz") else named or otherwise


def absolute(data: StreamConfig) -> StreamConfig:
    """Paths as they hold from any folder, so that a run can be resumed from anywhere."""
    folder = data.data_dir or os.environ.get(DATA_VARIABLE)
    return dataclasses.replace(
        data,
        npz=data.npz and data.npz.resolve(),
        data_dir=Path(folder).resolve() if folder else None,
    )


def given_settings(settings: Any, default: Any) -> dict[str, Any]:
    """Those that differ from the default, to be laid over a preset."""
    pairs = ((field.name, getattr(settings, field.name)) for field in dataclasses.fields(settings))
    return {name: value for name, value in pairs if value != getattr(default, name)}


def preset_of(arguments: Sequence[str], stream: str) -> str | None:
    """The experiment that is asked for, where a stream has several: by its name, or by its network."""
    net = peek(arguments, "net")
    return peek(arguments, "preset") or (net if net in BENCHMARKS.get(stream, {}) else None)
