"""`spacenet compare`: several methods on one stream, one table."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, make_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console
from tyro.conf import arg

from spacenet.cli.options import MARKERS, absolute, given_settings, preset_of, stream_of
from spacenet.cli.progress import callbacks, with_progress
from spacenet.cli.report import report_after
from spacenet.config.presets import preset
from spacenet.config.run import RunConfig
from spacenet.data.stream import StreamConfig
from spacenet.data.streams import STREAMS
from spacenet.errors import SettingsError
from spacenet.experiments.batch import Outcome, execute_all, in_this_process
from spacenet.experiments.comparison import REFERENCE, chosen_methods, configs, prepare, rows, settings_file
from spacenet.experiments.engines import EngineConfig
from spacenet.methods import method_names
from spacenet.option_types import Flag, OptionalPath, OptionalText
from spacenet.report.comparison import as_csv, as_json, as_markdown, comparison_tables, notes
from spacenet.report.page.build import PAGE
from spacenet.utils.files import save_text

DESCRIPTION = (
    "Run several methods on one stream and put them side by side. The same command goes on where it stopped; runs that "
    "are finished are not repeated."
)


@dataclass(frozen=True)
class CompareOptions:
    """Which stream, which methods, which seeds, and where the results go."""

    stream: Annotated[
        tyro.conf.Positional[str], arg(metavar="STREAM", help=f"What to learn: {', '.join(STREAMS)}; or give --npz.")
    ] = "split-digits"
    methods: Annotated[
        str, arg(metavar="A,B,…", help=f"The methods, separated by commas, or all: {', '.join(method_names())}.")
    ] = "naive,ewc,spacenet,joint"
    seeds: int = 1
    """Run each method with this many seeds, counting up from --seed."""
    seed: int = 0
    """The first seed."""
    preset: OptionalText = None
    """Settings of a certain experiment on the stream, where it has several: small-cnn, wrn-28-10, …"""
    net: OptionalText = None
    """Another network than the stream's own, for all methods."""
    config: OptionalPath = None
    """TOML file with settings for all methods ([training], [net], …), and for one in [methods.NAME.options]."""
    out: OptionalPath = None
    """Folder for the runs and tables (default: comparisons/STREAM)."""
    format: Literal["table", "markdown", "csv", "json"] = "table"
    """What is printed; the folder gets all of them."""
    quiet: Flag = False
    """Show no progress."""
    no_report: Flag = False
    """Make no page of pictures (report.html) in the end."""

    def __post_init__(self) -> None:
        if self.seeds < 1:
            raise SettingsError(f"seeds: {self.seeds} is too small (need 1 or more)")
        if self.seed < 0:
            raise SettingsError(f"seed: {self.seed} is negative")


def compare(arguments: list[str]) -> int:
    """Carry out `spacenet compare …`."""
    options, engine, every = _parse(arguments)
    stream = next(iter(every.values())).stream
    folder = options.out or Path("comparisons") / stream
    labels, refused = prepare(every, range(options.seed, options.seed + options.seeds), folder)
    try:
        outcomes = _execute(labels, engine, options.quiet)
    except KeyboardInterrupt:
        print("\ninterrupted; the same command goes on where it stopped", file=sys.stderr)
        return 130
    failures = [*refused, *(f"{labels[o.folder]}: {o.error}" for o in outcomes if o.error is not None)]
    title = _title(stream, options, outcomes)
    _save(folder, title, outcomes, failures)
    _print(title, outcomes, failures, options, folder)
    if not options.no_report and rows(outcomes):
        report_after(list(labels), folder / PAGE, silent=options.format != "table", failures=failures)
    return 1 if failures else 0


def _parse(arguments: list[str]) -> tuple[CompareOptions, EngineConfig, dict[str, RunConfig]]:
    """The options, where runs are computed, and each method's config."""
    stream = stream_of(arguments)
    preset_name = preset_of(arguments, stream)
    data = preset(stream, REFERENCE, preset_name=preset_name).data
    form = make_dataclass("Form", [("compare", CompareOptions), ("engine", EngineConfig), ("data", StreamConfig)])
    empty = form(CompareOptions(stream=stream), EngineConfig(), data)
    filled: Any = tyro.cli(
        form, prog="spacenet compare", description=DESCRIPTION, args=arguments, default=empty, config=MARKERS
    )
    options: CompareOptions = filled.compare
    over: dict[str, Any] = {"data": given_settings(absolute(filled.data), data)}
    if options.net:
        over["net"] = {"net": options.net}
    methods = chosen_methods(options.methods)
    return options, filled.engine, configs(stream, methods, settings_file(options.config), over, preset_name)


def _execute(labels: Mapping[Path, str], engine: EngineConfig, quiet: bool) -> list[Outcome]:
    folders = list(labels)
    coming = execute_all(folders, engine, lambda folder: callbacks(quiet))
    return list(coming if quiet or not folders or in_this_process(folders, engine) else with_progress(coming, labels))


def _title(stream: str, options: CompareOptions, outcomes: Sequence[Outcome]) -> str:
    where = next((o.metrics["evaluated_on"] for o in outcomes if o.metrics), "test set")
    seeds = f"{options.seeds} seeds" if options.seeds > 1 else f"seed {options.seed}"
    return f"{stream}, {seeds} ({where})"


def _save(folder: Path, title: str, outcomes: Sequence[Outcome], failures: Sequence[str]) -> None:
    found = rows(outcomes)
    folder.mkdir(parents=True, exist_ok=True)
    save_text(folder / "comparison.md", as_markdown(title, found))
    save_text(folder / "comparison.csv", as_csv(found))
    save_text(folder / "comparison.json", as_json(title, found, failures))


def _print(
    title: str, outcomes: Sequence[Outcome], failures: Sequence[str], options: CompareOptions, folder: Path
) -> None:
    found = rows(outcomes)
    if options.format == "table":
        console = Console()
        for table in comparison_tables(title, found, console.width):
            console.print(table)
        for note in notes(found):
            console.print(note, style="dim")
        print(f"Runs and tables are in {folder}")
    else:
        text = {"markdown": as_markdown(title, found), "csv": as_csv(found)}
        print(text.get(options.format) or as_json(title, found, failures), end="")
    for failure in failures:
        print(f"spacenet: {failure}", file=sys.stderr)
