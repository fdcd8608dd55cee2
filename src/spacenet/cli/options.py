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
from spacenet.config.run import RunConfig, read_toml
from spacenet.config.settings import Settings, check
from spacenet.config.stream import CUSTOM
from spacenet.registry import METHODS, STREAMS

DATA_VARIABLE = "SPACENET_DATA"
T = TypeVar("T")
STREAM_HELP = f"What to learn: {', '.join(STREAMS)}; or give --npz."
StreamArgument = Annotated[tyro.conf.Positional[str], arg(metavar="STREAM", help=STREAM_HELP)]
METHOD_NAMES = ", ".join(METHODS)


def peek(arguments: Sequence[str], option: str) -> str | None:
    """The value of an option that decides which others there are."""
    for argument, following in zip(arguments, [*arguments[1:], ""], strict=True):
        if argument == f"--{option}":
            return following
        if argument.startswith(f"--{option}="):
            return argument.split("=", 1)[1]
    return None


def stream_first(arguments: Sequence[str]) -> tuple[str | None, list[str]]:
    """A stream's name that does not follow an option, and the arguments with it in front.

    After an option with several values it would be taken for one of them.
    """
    for place, (before, argument) in enumerate(zip(["", *arguments], arguments, strict=False)):
        if argument in STREAMS and not before.startswith("--"):
            return argument, [argument, *arguments[:place], *arguments[place + 1 :]]
    return None, list(arguments)


@dataclass(frozen=True)
class Selection:
    """What decides which options there are, and their defaults."""

    stream: str
    method: str
    net: str | None
    preset: str | None
    file: dict[str, Any]

    @classmethod
    def peek(cls, arguments: Sequence[str]) -> "Selection":
        path = peek(arguments, "config")
        file = read_toml(Path(path)) if path else {}
        stream = stream_first(arguments)[0] or file.get("stream", {}).get("name", "split-digits")
        method = peek(arguments, "method") or file.get("method", {}).get("name", "spacenet")
        stream = CUSTOM if peek(arguments, "npz") else stream
        return cls(stream, method, peek(arguments, "net"), peek(arguments, "preset"), file)

    def config(self, settings: dict[str, Any], seed: int | None = None) -> RunConfig:
        """The configuration that the selection and settings give."""
        named: dict[str, Any] = {"net": self.net, "preset": self.preset, "config": self.file}
        return build_config(self.stream, self.method, settings=settings, seed=seed, **named)


def settings_form(config: RunConfig, groups: Sequence[str]) -> dict[str, tuple[type, Any]]:
    """For each group the form of its flags, with the configuration as defaults."""
    model = config.model
    values: dict[str, Settings] = {"stream": config.stream, "network": model.net, "training": model.training}
    values |= {"preprocessing": model.preprocessing, "method": model.method_settings}
    found = {}
    for group in groups:
        form = form_type(type(values[group]), skip=("name",))  # of the stream and the network: arguments of their own
        found[group] = form, form(**{f.name: getattr(values[group], f.name) for f in dataclasses.fields(form)})
    return found


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
    _, arguments = stream_first(arguments)
    while True:
        default = selection.config(settings or {})
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
    given = {}
    for group in groups:
        for name, value in vars(getattr(filled, group)).items():
            if value != getattr(forms[group][1], name):  # a path as it holds from any folder
                given[name] = value.resolve() if isinstance(value, Path) else value
    folder = os.environ.get(DATA_VARIABLE)
    if folder and getattr(options, "resume", None) is None:  # recorded, so that the run can be resumed without it
        given = {"data_dir": Path(folder).resolve(), **given}
    return options, EngineConfig(**vars(filled.engine)), selection, given
