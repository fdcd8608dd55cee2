"""`spacenet compare`: several methods on one stream, one table."""

import dataclasses
import sys
from dataclasses import dataclass, make_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from annotated_types import Ge
from tyro.conf import arg

from spacenet import api
from spacenet.cli.options import (
    Selection,
    engine_form,
    form_type,
    given_settings,
    methods_text,
    parse,
    settings_form,
    stream_argument,
)
from spacenet.cli.output import print_tables, write_report
from spacenet.config.settings import check
from spacenet.config.stream import CUSTOM

DESCRIPTION = (
    "Run several methods on one stream and put them side by side. The same command continues where it stopped; finished "
    "runs are not repeated."
)


@dataclass(frozen=True)
class CompareOptions:
    """The stream, the methods, the seeds, and where the results go."""

    stream: stream_argument() = "split-digits"  # type: ignore[valid-type]
    methods: Annotated[
        str, arg(metavar="A,B,…", help=f"The methods, separated by commas, or all: {methods_text()}.")
    ] = "naive,ewc,spacenet,joint"
    seeds: Annotated[int, Ge(1)] = 1
    """Run each method with this many seeds, counting up from --seed."""
    seed: Annotated[int, Ge(0)] = 0
    """The first seed."""
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
    quiet: bool = False
    """Show no progress."""
    no_report: bool = False
    """Write no HTML report (report.html) in the end."""


def compare(arguments: list[str]) -> int:
    """Execute `spacenet compare …`."""
    options, engine, selection, settings = _parse(arguments)
    check(options)
    folder = options.out or Path("comparisons") / selection.stream
    try:
        comparison = api.compare(
            selection.stream,
            options.methods,
            seeds=options.seeds,
            seed=options.seed,
            net=options.net,
            preset=options.preset,
            config=options.config,
            out=folder,
            progress=not options.quiet,
            **engine,
            **settings,
        )
    except KeyboardInterrupt:
        print("\ninterrupted; the same command continues where it stopped", file=sys.stderr)
        return 130
    _print(comparison, options, folder)
    if not options.no_report and comparison.rows:
        write_report(comparison, folder, silent=options.format != "table")
    return 1 if comparison.failures else 0


def _parse(arguments: list[str]) -> tuple[CompareOptions, dict[str, Any], Selection, dict[str, Any]]:
    selection = dataclasses.replace(Selection.peek(arguments), method=api.REFERENCE, file={})
    while True:
        forms = {"engine": engine_form(), **settings_form(selection.config(), ["stream_settings"])}
        kind = form_type(CompareOptions)
        form = make_dataclass("Form", [("compare", kind), *((name, each) for name, (each, _) in forms.items())])
        empty = form(kind(stream=selection.stream), *(value for _, value in forms.values()))
        filled: Any = parse(form, arguments, "compare", DESCRIPTION, empty)
        stream = CUSTOM if filled.stream_settings.npz is not None else filled.compare.stream
        if stream == selection.stream:
            break
        selection = dataclasses.replace(selection, stream=stream)
    settings = given_settings(filled, {"stream_settings": forms["stream_settings"]})
    return CompareOptions(**vars(filled.compare)), vars(filled.engine), selection, settings


def _print(comparison: api.Comparison, options: CompareOptions, folder: Path) -> None:
    if options.format == "table":
        print_tables(comparison.tables())
        print(f"Runs and tables are in {folder}")
    else:
        print(getattr(comparison, f"to_{options.format}")(), end="")
    for failure in comparison.failures:
        print(f"spacenet: {failure}", file=sys.stderr)
