"""Options from settings: the command line's flags are the fields of the configuration, with their texts and bounds."""

import dataclasses
import os
import types
import typing
from collections.abc import Sequence
from dataclasses import dataclass, make_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import tyro
from tyro.conf import arg

from spacenet.api.settings import build_config
from spacenet.config.engine import EngineConfig
from spacenet.config.model import NetConfig, PreprocessingConfig
from spacenet.config.run import RunConfig, read_toml
from spacenet.config.settings import Settings, bounds_of, check, field_docs, field_types
from spacenet.config.stream import CUSTOM, StreamConfig
from spacenet.config.training import TrainingConfig
from spacenet.registry import METHODS, STREAMS

DATA_VARIABLE = "SPACENET_DATA"
MARKERS = (tyro.conf.OmitArgPrefixes, tyro.conf.FlagCreatePairsOff)
METAVARS: dict[Any, str] = {int: "INT", float: "NUMBER", str: "TEXT", Path: "PATH"}
T = TypeVar("T")


def parse(kind: type[Any], arguments: Sequence[str], command: str, description: str, default: Any = None) -> Any:
    """Fill a form from the command line; --help and mistakes end the program."""
    extra = {} if default is None else {"default": default}
    return tyro.cli(
        form_type(kind) if dataclasses.is_dataclass(kind) and default is None else kind,
        prog=f"spacenet {command}",
        description=description,
        args=list(arguments),
        config=MARKERS,
        **extra,
    )


def form_type(kind: type, skip: Sequence[str] = ()) -> type:
    """The options that a dataclass declares: each field's flag, with its text, bounds and placeholder."""
    docs, hints = field_docs(kind), field_types(kind)
    fields = []
    for field in dataclasses.fields(kind):
        if field.name in skip:
            continue
        declared = _annotated(hints[field.name], docs.get(field.name, ""))
        default = (
            dataclasses.field(default_factory=field.default_factory)
            if field.default_factory is not dataclasses.MISSING
            else field.default
        )
        required = default is dataclasses.MISSING
        fields.append((field.name, declared) if required else (field.name, declared, default))
    return make_dataclass(kind.__name__, fields, namespace={"__doc__": kind.__doc__}, frozen=True)


def _annotated(hint: Any, doc: str) -> Any:
    """A field's type with what the help says of it. A type that says so itself (tyro's markers) is left as it is."""
    if typing.get_origin(hint) is Annotated and any("tyro" in type(each).__module__ for each in typing.get_args(hint)):
        return hint
    plain, bounds = _strip(hint), bounds_of(hint)
    text = f"{doc.removesuffix('.')} ({bounds})." if bounds and doc else doc
    return Annotated[plain, arg(help=text or None, metavar=_metavar(plain), help_behavior_hint=_default_hint)]


def _strip(hint: Any) -> Any:
    """The type without bounds."""
    if typing.get_origin(hint) is Annotated:
        return _strip(typing.get_args(hint)[0])
    if isinstance(hint, types.UnionType):
        first, *rest = map(_strip, typing.get_args(hint))
        for each in rest:
            first = first | each
        return first
    if typing.get_origin(hint) is tuple:
        return types.GenericAlias(tuple, (_strip(typing.get_args(hint)[0]), ...))
    return hint


def _metavar(plain: Any) -> str | None:
    members = [each for each in typing.get_args(plain) if each is not types.NoneType]
    if isinstance(plain, types.UnionType):
        return _metavar(members[0]) if len(members) == 1 else "NUMBER …"
    if typing.get_origin(plain) is tuple:
        return f"{METAVARS.get(members[0], 'VALUE')} …"
    return None if typing.get_origin(plain) is Literal or plain is bool else METAVARS.get(plain)


def _default_hint(default: str) -> str:
    return "" if default in ("", "None", "False") else f"(default: {default})"


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
    for before, argument in zip(["", *arguments], arguments, strict=False):
        if argument in STREAMS and not before.startswith("--"):
            return argument
    return otherwise


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
    "stream_settings": (StreamConfig, ("name",)),
    "net_settings": (NetConfig, ("name",)),
    "training": (TrainingConfig, ()),
    "preprocessing": (PreprocessingConfig, ()),
}
"""The groups of settings that every run has, and the fields that are no flags of their own."""


def settings_form(config: RunConfig, groups: Sequence[str]) -> dict[str, tuple[type, Any]]:
    """For each group the form of its flags, with the configuration as defaults."""
    values = {
        "stream_settings": config.stream,
        "net_settings": config.model.net,
        "training": config.model.training,
        "preprocessing": config.model.preprocessing,
        "method_settings": config.model.method_settings,
    }
    kinds = {**GROUPS, "method_settings": (type(config.model.method_settings), ())}
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
    folder = os.environ.get(DATA_VARIABLE)
    if "stream_settings" in defaults and folder and "data_dir" not in given:
        given["data_dir"] = Path(folder).resolve()
    return given


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
    while True:
        default = selection.config(settings)
        forms = {"engine": (engine := form_type(EngineConfig), engine()), **settings_form(default, groups)}
        own = form_type(kind)
        form = make_dataclass("Form", [("own", own), *((name, each) for name, (each, _) in forms.items())])
        known = {field.name for field in dataclasses.fields(own)}
        start = {"stream": selection.stream, "method": selection.method, "seed": default.model.seed}
        empty = form(own(**{n: v for n, v in start.items() if n in known}), *(value for _, value in forms.values()))
        filled: Any = parse(form, arguments, command, description, empty)
        stream = CUSTOM if filled.stream_settings.npz is not None else filled.own.stream
        if stream == selection.stream:
            break
        selection = dataclasses.replace(selection, stream=stream)
    options = kind(**vars(filled.own))
    check(options)
    given = given_settings(filled, {name: forms[name] for name in groups})
    return options, EngineConfig(**vars(filled.engine)), selection, given
