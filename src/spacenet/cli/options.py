"""What the commands that learn a stream share: their settings as flags, with the defaults of the stream's preset."""

import dataclasses
import os
from collections.abc import Sequence
from dataclasses import dataclass, make_dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import tyro
from tyro.conf import arg

from spacenet.api.settings import build_config
from spacenet.cli.forms import fill, form_type
from spacenet.config.engine import EngineConfig
from spacenet.config.model import NetConfig, PreprocessingConfig
from spacenet.config.run import RunConfig, read_toml
from spacenet.config.settings import Settings, check
from spacenet.config.stream import CUSTOM, StreamConfig
from spacenet.config.training import TrainingConfig
from spacenet.registry import METHODS, STREAMS

DATA_VARIABLE = "SPACENET_DATA"
T = TypeVar("T")


def stream_argument() -> Any:
    """The positional argument that names a stream."""
    text = f"What to learn: {', '.join(STREAMS)}; or give --npz."
    return Annotated[tyro.conf.Positional[str], arg(metavar="STREAM", help=text)]


def methods_text() -> str:
    return ", ".join(METHODS)


def peek(arguments: Sequence[str], option: str) -> str | None:
    """The value of an option that decides which others there are."""
    for argument, following in zip(arguments, [*arguments[1:], ""], strict=True):
        if argument == f"--{option}":
            return following
        if argument.startswith(f"--{option}="):
            return argument.split("=", 1)[1]
    return None


def guess_stream(arguments: Sequence[str], otherwise: str) -> str:
    """The stream whose defaults the help shows: a name that does not follow an option. The parser has the last word."""
    if peek(arguments, "npz"):
        return CUSTOM
    place = find_stream(arguments)
    return otherwise if place is None else arguments[place]


def find_stream(arguments: Sequence[str]) -> int | None:
    """The place of a stream's name that does not follow an option."""
    for place, (before, argument) in enumerate(zip(["", *arguments], arguments, strict=False)):
        if argument in STREAMS and not before.startswith("--"):
            return place
    return None


def stream_first(arguments: Sequence[str]) -> list[str]:
    """The same with the stream in front: after an option with several values it would be taken for one of them."""
    place = find_stream(arguments)
    return list(arguments) if place is None else [arguments[place], *arguments[:place], *arguments[place + 1 :]]


@dataclass(frozen=True)
class Selection:
    """What decides which options there are, and their defaults."""

    stream: str
    method: str
    net: str | None
    preset: str | None
    file: dict[str, Any]

    @classmethod
    def peek(cls, arguments: Sequence[str], default_method: str = "spacenet") -> "Selection":
        path = peek(arguments, "config")
        file = read_toml(Path(path)) if path else {}
        return cls(
            guess_stream(arguments, file.get("stream", {}).get("name", "split-digits")),
            peek(arguments, "method") or file.get("method", {}).get("name", default_method),
            peek(arguments, "net"),
            peek(arguments, "preset"),
            file,
        )

    def config(self, settings: dict[str, Any] | None = None, seed: int | None = None) -> RunConfig:
        """The configuration that the selection and settings give."""
        return build_config(
            self.stream,
            self.method,
            net=self.net,
            preset=self.preset,
            config=self.file,
            seed=seed,
            settings=settings or {},
        )


GROUPS: dict[str, tuple[type[Settings], Sequence[str]]] = {
    "stream": (StreamConfig, ("name",)),
    "network": (NetConfig, ("name",)),
    "training": (TrainingConfig, ()),
    "preprocessing": (PreprocessingConfig, ()),
}
"""The groups of settings that every run has, and the fields that are no flags of their own."""


def settings_form(config: RunConfig, groups: Sequence[str]) -> dict[str, tuple[type, Any]]:
    """For each group the form of its flags, with the configuration as defaults."""
    values = {
        "stream": config.stream,
        "network": config.model.net,
        "training": config.model.training,
        "preprocessing": config.model.preprocessing,
        "method": config.model.method_settings,
    }
    kinds = {**GROUPS, "method": (type(config.model.method_settings), ())}
    found = {}
    for name in groups:
        kind, skip = kinds[name]
        form = form_type(kind, skip)
        found[name] = form, form(**{f.name: getattr(values[name], f.name) for f in dataclasses.fields(form)})
    return found


def given_settings(filled: Any, defaults: dict[str, tuple[type, Any]]) -> dict[str, Any]:
    """The settings that differ from their defaults, by name; paths as they hold from any folder."""
    given = {}
    for group, (form, default) in defaults.items():
        for field in dataclasses.fields(form):
            value = getattr(getattr(filled, group), field.name)
            if value != getattr(default, field.name):
                given[field.name] = value.resolve() if isinstance(value, Path) else value
    return given


def environment_settings() -> dict[str, Any]:
    """Settings from the environment; a run records them, so that it can be resumed without it."""
    folder = os.environ.get(DATA_VARIABLE)
    return {"data_dir": Path(folder).resolve()} if folder else {}


def parse_stream_command(
    kind: type[T],
    arguments: Sequence[str],
    command: str,
    description: str,
    groups: Sequence[str],
    selection: Selection,
    settings: dict[str, Any] | None = None,
) -> tuple[T, EngineConfig, Selection, dict[str, Any]]:
    """Parse a command that learns a stream: its own options, where to compute, and the settings that differ.

    Which flags there are, and their defaults, depends on the stream. It is guessed first; if the parser finds another
    one, the command line is parsed again with that.
    """
    arguments = stream_first(arguments)
    while True:
        default = selection.config(settings)
        forms = {"engine": (engine := form_type(EngineConfig), engine()), **settings_form(default, groups)}
        own = form_type(kind)
        form = make_dataclass("Form", [("main", own), *((name, each) for name, (each, _) in forms.items())])
        known = {field.name for field in dataclasses.fields(own)}
        start = {"stream": selection.stream, "method": selection.method, "seed": default.model.seed}
        empty = form(own(**{n: v for n, v in start.items() if n in known}), *(value for _, value in forms.values()))
        filled = fill(form, arguments, command, description, empty)
        stream = CUSTOM if filled.stream.npz is not None else filled.main.stream
        if stream == selection.stream:
            break
        selection = dataclasses.replace(selection, stream=stream)
    options = kind(**vars(filled.main))
    check(options)
    given = given_settings(filled, {name: forms[name] for name in groups})
    if getattr(options, "resume", None) is None:
        given = {**environment_settings(), **given}
    return options, EngineConfig(**vars(filled.engine)), selection, given
