"""From what a user passes to a configuration: a stream, a method, a network, settings by their own names."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from spacenet.config.model import merge, nest_settings, settings_of, sort_into_sections, unknown_setting
from spacenet.config.presets import default_method, preset_config, preset_names
from spacenet.config.run import RunConfig, check_sections, check_settings, read_toml
from spacenet.config.settings import to_plain
from spacenet.config.stream import DATA_SETTINGS, StreamConfig
from spacenet.data.kinds import looks_like_data, source_name
from spacenet.data.sources import data_settings
from spacenet.data.stream import Stream
from spacenet.data.task import format_tasks
from spacenet.encoders.loading import encoder_name
from spacenet.errors import SettingsError
from spacenet.methods import Method, register_method
from spacenet.nets import Net, net_name
from spacenet.registry import METHODS, STREAMS, unknown

ALL = "all"
Settings = RunConfig | str | Path | Mapping[str, Any] | None
STREAM_SETTINGS = [field.name for field in fields(StreamConfig) if field.name not in ("name", "data")]
ARGUMENTS = ("method", "methods", "seed", "seeds", "net", "preset", "config", "out", "progress", "workers", "trials")
"""Arguments of `run`, `compare` and `sweep` besides settings, for a name that is mistyped."""


def read_settings(config: Settings, method: str | type[Method] | None = None) -> dict[str, Any]:
    """Settings as nested mappings: from a TOML file, from mappings, or from the configuration of another run.

    `method` is the one that [method] belongs to where they do not name one.
    """
    if isinstance(config, RunConfig):
        return config.to_plain()
    name = None if method is None else method_name(method)
    if isinstance(config, (str, Path)):
        return read_toml(Path(config), name)
    values = dict(config or {})
    check_sections(values)
    check_settings(values, name)
    return values


def method_name(method: str | type[Method]) -> str:
    """The name of a method; a class that is not known by its name yet is registered."""
    if isinstance(method, str):
        return method
    if METHODS.get(method.name) is not method:
        register_method(method)
    return method.name


def method_names(methods: str | Iterable[str | type[Method]]) -> list[str]:
    """The names of several methods: given one by one, in a text with commas, or as "all"."""
    if methods == ALL:
        return list(METHODS)
    given = [name.strip() for name in methods.split(",") if name.strip()] if isinstance(methods, str) else methods
    names = [method_name(method) for method in given]
    if not names:
        raise SettingsError("no method is named", setting="methods")
    return names


def build_config(
    stream: Stream | str,
    method: str | type[Method] | None,
    *,
    net: Net | None = None,
    preset: str | None = None,
    config: Settings = None,
    seed: int | None = None,
    settings: Mapping[str, Any],
) -> RunConfig:
    """The configuration of a run: the preset, over it `config`, over it what is given by name."""
    layers = read_settings(config, method)
    chosen, encoder = method or layers.get("method", {}).get("name"), _encoder(stream, settings)
    name = method_name(chosen or default_method(stream_name(stream), encoder))
    over = settings_layers(stream, name, settings)
    if isinstance(stream, Stream):
        layers.pop("stream", None)
    elif not is_path(stream) and "stream" in layers:  # its data is not that of the configuration
        layers["stream"] = {key: value for key, value in layers["stream"].items() if key not in DATA_SETTINGS}
    if layers.get("method", {}).get("name", name) != name:
        layers.pop("method")  # they are another method's
    network = net_name(net)
    if network is not None:
        over = merge(over, {"net": {"name": network}})
        preset = preset or (network if network in preset_names(stream_name(stream)) else None)
    if seed is not None:
        over["seed"] = seed
    return preset_config(stream_name(stream), name, layers, over, preset=preset)


def stream_name(stream: Stream | str) -> str:
    """The name of a stream, also of one that is given by the path of its data."""
    if isinstance(stream, Stream):
        return stream.name
    return source_name(Path(stream)) if is_path(stream) else stream


def is_path(stream: str) -> bool:
    """Whether a stream is given by the path of its data, not by its name."""
    return stream not in STREAMS and looks_like_data(stream)


def resolve_stream(source: Any, settings: Mapping[str, Any]) -> tuple[Stream | str, dict[str, Any]]:
    """A stream, or a name or path, and the settings that are not used up by making it.

    Data in memory (arrays, a data frame, a data set) becomes a stream at once; files are read later.
    """
    if isinstance(source, Stream | str):
        return source, dict(settings)
    if isinstance(source, Path):
        return str(source), dict(settings)
    own = {name: value for name, value in settings.items() if name in STREAM_SETTINGS}
    rest = {name: value for name, value in settings.items() if name not in own}
    return Stream.from_data(source, **own), rest


def settings_layers(stream: Stream | str, method: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings given by name, as nested mappings; those of the stream go with a stream that is given by name."""
    of_stream = {name: value for name, value in settings.items() if name in STREAM_SETTINGS}
    if of_stream and isinstance(stream, Stream):
        raise SettingsError(
            "goes with the name of a stream; this stream is cut already, give it where the stream is made",
            setting=next(iter(of_stream)),
        )
    rest = {name: value for name, value in settings.items() if name not in of_stream}
    if encoder := _encoder(stream, settings):
        rest["encoder"] = encoder
    if not isinstance(of_stream.get("tasks", ""), str | None):
        of_stream["tasks"] = format_tasks(of_stream["tasks"])
    if isinstance(stream, str) and is_path(stream):
        of_stream |= data_settings({key: value for key, value in of_stream.items() if key in DATA_SETTINGS})
        of_stream["data"] = Path(stream).expanduser().resolve()
    check_names(rest, [method])
    own = to_plain(stream.config) if isinstance(stream, Stream) else to_plain(of_stream)
    return {"stream": own, **to_plain(sort_into_sections(method, rest))}


def _encoder(stream: Stream | str, settings: Mapping[str, Any]) -> str | None:
    """The name of the encoder that is given, or of the one whose features a stream holds."""
    return encoder_name(settings.get("encoder")) or (stream.dataset.encoder if isinstance(stream, Stream) else None)


def check_names(settings: Iterable[str], methods: Sequence[str]) -> None:
    """Raise `SettingsError` for a name that is no setting of any of these methods."""
    known = dict.fromkeys([*(name for method in methods for name in settings_of(method)), *STREAM_SETTINGS])
    for name in settings:
        if name not in known:
            raise unknown_setting(name, methods, [*known, *ARGUMENTS])


def layers_by_method(
    stream: Stream | str, methods: list[str], settings: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """Settings given by name, for each method those that it has. One that none of them has is an error."""
    check_names(settings, methods)
    known = {method: [*settings_of(method), *STREAM_SETTINGS] for method in methods}
    return {
        method: settings_layers(stream, method, {name: settings[name] for name in settings if name in names})
        for method, names in known.items()
    }


def check_compared(method: str, methods: Sequence[str]) -> None:
    """Raise `SettingsError` unless the method is among these."""
    if method not in METHODS:
        raise unknown("method", method, methods)
    if method not in methods:
        raise SettingsError(f"{method} is not among the methods compared: {', '.join(methods)}")


def nest_method_settings(methods: Sequence[str], given: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Settings of single methods, each given by its own name, as nested mappings."""
    for name in given:
        check_compared(name, methods)
    return {name: to_plain(nest_settings(name, own)) for name, own in given.items()}
