"""`spacenet compare`: several methods on one stream, one table."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from tyro.conf import arg

from spacenet import api
from spacenet.cli.assignments import Assignments, parse_assignments
from spacenet.cli.folders import default_folder
from spacenet.cli.options import METHOD_NAMES, EncoderOption, StreamOptions, parse_stream_command, peek
from spacenet.cli.output import end_command, print_tables
from spacenet.config.run import read_toml


@dataclass(frozen=True)
class CompareOptions(StreamOptions):
    """Run several methods on one stream and put them side by side. The same command continues where it stopped;
    finished runs are not repeated.
    """

    methods: Annotated[str, arg(metavar="A,B,…", help=f"The methods, separated by commas, or all: {METHOD_NAMES}.")] = (
        "naive,ewc,spacenet,joint"
    )
    preset: str | None = None
    """Preset of the stream, where it has several: small-cnn, wrn-28-10, …"""
    net: str | None = None
    """Another network than the preset's, for all methods."""
    encoder: EncoderOption = None
    config: Path | None = None
    """TOML file with settings for all methods ([training], [net], …), and for one in [methods.NAME]."""
    set: Annotated[
        Assignments,
        arg(
            metavar="[METHOD.]NAME=VALUE",
            help="A setting of all methods (epochs=3) or of one (ewc.strength=500); may be given several times.",
            help_behavior_hint="",
        ),
    ] = ()
    out: Path | None = None
    """Folder for the runs and tables (default: comparisons/STREAM, with the cut and other settings in its name)."""
    format: Literal["table", "markdown", "latex", "csv", "json"] = "table"
    """What is printed."""
    no_report: bool = False
    """Write no HTML report (report.html) in the end."""


def compare(arguments: list[str]) -> int:
    selection = {**peek(arguments), "method": api.REFERENCE, "config": {}}
    options, engine, selection, settings = parse_stream_command(CompareOptions, arguments, "compare", selection)
    methods = api.method_names(options.methods)
    common, own = parse_assignments(options.set, methods)
    settings |= common | ({"encoder": options.encoder} if options.encoder else {})
    folder = options.out or _default_folder(options, selection["stream"], settings, own)
    given = {name: getattr(options, name) for name in ("seeds", "seed", "net", "preset", "config")}
    given |= {
        "methods": methods,
        "method_settings": own,
        "out": folder,
        "progress": not options.quiet,
        **vars(engine),
        **settings,
    }
    comparison = api.compare(selection["stream"], **given)
    if options.format == "table":
        print_tables(comparison.tables())
        print(f"Runs and tables are in {folder}")
    else:
        print(getattr(comparison, f"to_{options.format}")(), end="")
    report = not options.no_report and bool(comparison.rows)
    return end_command(comparison, folder, report=report, silent=options.format != "table")


def _default_folder(options: CompareOptions, stream: str, settings: dict[str, Any], own: dict[str, Any]) -> Path:
    """Methods and seeds are not part of its name: more of them are added to what it holds."""
    given = {"net": options.net, "preset": options.preset, "method_settings": own}
    given["config"] = read_toml(options.config) if options.config else None
    return default_folder("comparisons", api.stream_name(stream), {**settings, **given})
