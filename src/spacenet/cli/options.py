"""What the commands that learn a stream share: their settings as flags, with the defaults of the stream's preset."""

from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass, make_dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import tyro
from annotated_types import Ge
from tyro.conf import arg

from spacenet.api.settings import build_config
from spacenet.cli.forms import describe, fill, form_type
from spacenet.config.engine import EngineConfig
from spacenet.config.presets import default_method
from spacenet.config.run import RunConfig, read_toml
from spacenet.config.settings import Settings, check, field_types
from spacenet.data.fetch import environment_folder
from spacenet.data.kinds import looks_like_data
from spacenet.registry import METHODS, STREAMS

T = TypeVar("T")
FILES_HELP = (
    ".npz (x_train, y_train, x_test, y_test, or x, y), .csv or .parquet with --label, or a folder with one sub-folder "
    "per class"
)
STREAM_HELP = f"What to learn: {', '.join(STREAMS)}; or data of your own: {FILES_HELP}."
StreamArgument = Annotated[tyro.conf.Positional[str], arg(metavar="DATA", help=STREAM_HELP)]
METHOD_NAMES = ", ".join(METHODS)
EncoderOption = Annotated[
    str | None,
    arg(
        metavar="NAME",
        help="Learn on the features of this frozen pretrained network: efficientnet-lite0 or -lite2, "
        "all-minilm-l6-v2 (texts), timm:NAME, torchvision:NAME, or a file (.onnx, .pt2).",
    ),
]
"""Of commands whose other settings of preprocessing are no options."""


@dataclass(frozen=True)
class StreamOptions:
    """What the commands have in common besides the settings."""

    stream: StreamArgument = "split-digits"
    config: Path | None = None
    """Take settings from this TOML file (a run writes its own as config.toml); options given here win."""
    seed: Annotated[int, Ge(0)] = 0
    """The first seed. Everything random follows from it: the same seed gives the same result, bit for bit."""
    seeds: Annotated[int, Ge(1)] = 1
    """Run this many seeds, counting up from --seed; what is printed is the mean, with the standard deviation."""
    quiet: bool = False
    """Show no progress."""


def stream_first(arguments: Sequence[str]) -> tuple[str | None, list[str]]:
    """A stream's name, or the path of data, that does not follow an option, and the arguments with it in front.

    After an option with several values it would be taken for one of them.
    """
    names = set(STREAMS)  # each look into the registry reads what all installed packages offer
    for place, (before, argument) in enumerate(zip(["", *arguments], arguments, strict=False)):
        if before.startswith("--") or argument.startswith("-") or _is_number(argument):
            continue
        if argument in names or looks_like_data(argument):
            return argument, [argument, *arguments[:place], *arguments[place + 1 :]]
    return None, list(arguments)


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdecimal()


def peek(arguments: Sequence[str]) -> dict[str, Any]:
    """What decides which options there are, and their defaults; arguments of `spacenet.run`, as its own."""
    parser = ArgumentParser(add_help=False, allow_abbrev=False)
    for option in ("config", "method", "net", "preset", "encoder"):
        parser.add_argument(f"--{option}", nargs="?")
    given, _ = parser.parse_known_args(arguments)
    config = read_toml(Path(given.config), given.method) if given.config else {}
    of_config = config.get("stream", {})
    stream = stream_first(arguments)[0] or of_config.get("data") or of_config.get("name", "split-digits")
    return {
        "stream": stream,
        "method": given.method or config.get("method", {}).get("name") or default_method(stream, given.encoder),
        "net": given.net,
        "preset": given.preset,
        "config": config,
    }


def parse_stream_command(
    kind: type[T],
    arguments: Sequence[str],
    command: str,
    selection: dict[str, Any],
    groups: Sequence[str] = ("stream",),
    settings: dict[str, Any] | None = None,
) -> tuple[T, EngineConfig, dict[str, Any], dict[str, Any]]:
    """Parse a command that learns a stream: its own options, where to compute, what `peek` found, other settings.

    Which flags there are, and their defaults, depends on the stream. It is guessed first; if the parser finds another
    one, the command line is parsed again with that.
    """
    _, arguments = stream_first(arguments)
    own = form_type(kind, doc="")
    while True:
        config = build_config(**selection, settings=settings or {})
        settings_of = _settings_by_group(config)
        defaults = {group: _filled_form(settings_of[group]) for group in ("engine", *groups)}
        form = make_dataclass("Form", [("main", own), *((name, type(each)) for name, each in defaults.items())])
        start = {"stream": selection["stream"], "method": selection["method"], "seed": config.model.seed}
        main = own(**{name: value for name, value in start.items() if name in field_types(own)})
        filled = fill(form, arguments, command, describe(kind), form(main, **defaults))
        if filled.main.stream == selection["stream"]:
            break
        selection = {**selection, "stream": filled.main.stream}
    options = kind(**vars(filled.main))
    check(options)
    given = {
        name: value.resolve() if isinstance(value, Path) else value  # a path as it holds from any folder
        for group in groups
        for name, value in vars(getattr(filled, group)).items()
        if value != getattr(defaults[group], name)
    }
    folder = environment_folder()
    if folder and getattr(options, "resume", None) is None:  # recorded, so that the run can be resumed without it
        given = {"data_dir": folder, **given}
    return options, EngineConfig(**vars(filled.engine)), selection, given


def _settings_by_group(config: RunConfig) -> dict[str, Settings]:
    model = config.model
    return {
        "engine": EngineConfig(),
        "stream": config.stream,
        "network": model.net,
        "training": model.training,
        "preprocessing": model.preprocessing,
        "method": model.method_settings,
    }


NO_FLAGS = ("name", "data", "graph", "encoder_checksum", "encoder_version")
"""Fields that no flag gives: names and data are arguments, the graph of a module is found when it is traced, and the
checksum and version of an encoder when it is loaded."""


def _filled_form(settings: Settings) -> Any:
    """The flags of settings with their values, without the name of the stream or the network, which are arguments."""
    values = {name: value for name, value in vars(settings).items() if name not in NO_FLAGS}
    return form_type(type(settings), skip=NO_FLAGS)(**values)
