"""`spacenet compare`: several methods on one stream, one table."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import arg

from spacenet import api
from spacenet.cli.options import METHOD_NAMES, StreamOptions, parse_stream_command, peek
from spacenet.cli.output import end_command, print_tables


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
    config: Path | None = None
    """TOML file with settings for all methods ([training], [net], …), and for one in [methods.NAME.method]."""
    out: Path | None = None
    """Folder for the runs and tables (default: comparisons/STREAM)."""
    format: Literal["table", "markdown", "latex", "csv", "json"] = "table"
    """What is printed."""
    no_report: bool = False
    """Write no HTML report (report.html) in the end."""


def compare(arguments: list[str]) -> int:
    selection = {**peek(arguments), "method": api.REFERENCE, "config": {}}
    options, engine, selection, settings = parse_stream_command(CompareOptions, arguments, "compare", selection)
    folder = options.out or Path("comparisons") / api.stream_name(selection["stream"])
    given = {name: getattr(options, name) for name in ("methods", "seeds", "seed", "net", "preset", "config")}
    given |= {"out": folder, "progress": not options.quiet, **vars(engine), **settings}
    comparison = api.compare(selection["stream"], **given)
    if options.format == "table":
        print_tables(comparison.tables())
        print(f"Runs and tables are in {folder}")
    else:
        print(getattr(comparison, f"to_{options.format}")(), end="")
    report = not options.no_report and bool(comparison.rows)
    return end_command(comparison, folder, report=report, silent=options.format != "table")
