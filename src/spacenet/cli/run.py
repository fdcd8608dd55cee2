"""`spacenet run`: learn a stream, once or with several seeds, or go on with what was interrupted."""

import dataclasses
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, make_dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from tyro.conf import arg

from spacenet.cli.options import MARKERS, absolute, peek, preset_of, stream_of
from spacenet.cli.progress import callbacks, with_progress
from spacenet.cli.report import report_after
from spacenet.config.presets import preset
from spacenet.config.run import RunConfig, read_toml
from spacenet.data.streams import NPZ, STREAMS
from spacenet.errors import RunError, SettingsError
from spacenet.experiments.batch import execute_all, in_this_process
from spacenet.experiments.callbacks import Callback
from spacenet.experiments.engines import EngineConfig
from spacenet.experiments.run import CONFIG, check, create_folder
from spacenet.experiments.seeds import create_folders, save_summary, seed_folders
from spacenet.methods import get_method, method_names
from spacenet.option_types import Flag, OptionalPath, OptionalText
from spacenet.report.page.build import PAGE
from spacenet.report.tables import run_report, seeds_table
from spacenet.report.tensorboard import TensorBoardLogger

DESCRIPTION = (
    "Learn a stream of tasks, one after another, and measure what is remembered. "
    "Defaults are the stream's preset for the method; --method NAME --help shows that method's own."
)


@dataclass(frozen=True)
class RunOptions:
    """Which stream, which method, which seeds, and where the results go."""

    stream: Annotated[
        tyro.conf.Positional[str], arg(metavar="STREAM", help=f"What to learn: {', '.join(STREAMS)}; or give --npz.")
    ] = "split-digits"
    method: Annotated[str, arg(metavar="NAME", help=f"How to learn it: {', '.join(method_names())}.")] = "spacenet"
    preset: OptionalText = None
    """Settings of a certain experiment on the stream, where it has several: small-cnn, wrn-28-10, expanded, …"""
    seed: int = 0
    """Everything random follows from it: the same seed gives the same result, bit for bit."""
    seeds: int = 1
    """Run this many seeds, counting up from --seed, and print mean ± standard deviation."""
    out: OptionalPath = None
    """Folder for the results (default: a new one in runs/)."""
    config: OptionalPath = None
    """Take settings from this TOML file (a run writes its own as config.toml); options given here win."""
    resume: OptionalPath = None
    """Go on with the interrupted run in this folder; needs nothing else."""
    json: Flag = False
    """Print the metrics as JSON instead of tables."""
    quiet: Flag = False
    """Show no progress."""
    tensorboard: Flag = False
    """Write scalars while it runs, and the pictures in the end, to DIR/tensorboard (seeds then run one by one)."""
    no_report: Flag = False
    """Make no page of pictures (report.html) in the end."""

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise SettingsError(f"seed: {self.seed} is negative")
        if self.seeds < 1:
            raise SettingsError(f"seeds: {self.seeds} is too small (need 1 or more)")


def run(arguments: list[str]) -> int:
    """Carry out `spacenet run …`."""
    options, engine, config, given = _parse(arguments)
    if options.resume is not None:
        if given:
            raise SettingsError("resume: settings come from the folder; only --workers, --json and --quiet go with it")
        folder = options.resume
        several = seed_folders(folder)
        if not several and not (folder / CONFIG).is_file():
            raise RunError(f"{folder} holds no run (there is no {CONFIG} in it)")
    else:
        check(config)
        folder = options.out or _new_folder(config)
        several = []
        if options.seeds > 1:
            several = create_folders(config, range(config.seed, config.seed + options.seeds), folder)
        else:
            create_folder(config, folder)
    try:
        return _execute_several(folder, several, options, engine) if several else _execute_one(folder, options)
    except KeyboardInterrupt:
        print(f"\ninterrupted; go on with: spacenet run --resume {folder}", file=sys.stderr)
        return 130


def _parse(arguments: list[str]) -> tuple[RunOptions, EngineConfig, RunConfig, bool]:
    """Options of the run, where it is computed, its config, and whether any of the config was given here."""
    file = peek(arguments, "config")
    from_file = read_toml(Path(file)) if file else {}
    stream = stream_of(arguments, from_file.get("stream", "split-digits"))
    method = peek(arguments, "method") or from_file.get("method", "spacenet")
    if method != from_file.get("method"):
        from_file.pop("options", None)  # they are another method's
    net = peek(arguments, "net")
    net_given = {"net": {"net": net}} if net else {}
    default = preset(stream, method, from_file, net_given, preset_name=preset_of(arguments, stream))
    kinds: dict[str, type] = {
        "run": RunOptions,
        "engine": EngineConfig,
        "data": type(default.data),
        "net": type(default.net),
        "training": type(default.training),
        "method": get_method(method).Settings,
    }
    form = make_dataclass("Form", kinds.items())
    run = RunOptions(stream=stream, method=method, seed=default.seed)
    empty = form(run, EngineConfig(), default.data, default.net, default.training, default.options)
    filled: Any = tyro.cli(
        form, prog="spacenet run", description=DESCRIPTION, args=arguments, default=empty, config=MARKERS
    )
    options: RunOptions = filled.run
    stream = options.stream if filled.data.npz is None else NPZ
    config = RunConfig(
        stream, options.method, options.seed, filled.data, filled.net, filled.training, options=filled.method
    )
    return options, filled.engine, dataclasses.replace(config, data=absolute(config.data)), config != default


def _new_folder(config: RunConfig) -> Path:
    base = Path("runs") / f"{datetime.now():%Y%m%d-%H%M%S}-{config.stream}-{config.method}"
    others = (base.with_name(f"{base.name}-{number}") for number in range(2, 1000))
    return next(folder for folder in (base, *others) if not folder.exists())


def _execute_one(folder: Path, options: RunOptions) -> int:
    (outcome,) = execute_all([folder], EngineConfig(workers=1), lambda each: _watches(each, options))
    if outcome.metrics is not None:
        if options.json:
            print(json.dumps(outcome.metrics, indent=1))
        else:
            Console().print(run_report(outcome.metrics))
            print(f"Results are in {folder}")
        if outcome.metrics["tasks_learned"] and not options.no_report:
            report_after([folder], folder / PAGE, silent=options.json)
    if outcome.error is not None:
        print(f"spacenet: {outcome.error}", file=sys.stderr)
    return outcome.exit_code


def _watches(folder: Path, options: RunOptions) -> list[Callback]:
    board = [TensorBoardLogger(folder)] if options.tensorboard else []
    return [*callbacks(options.quiet), *board]


def _execute_several(folder: Path, folders: Sequence[Path], options: RunOptions, engine: EngineConfig) -> int:
    if options.tensorboard:  # it watches live, so in this process
        engine = EngineConfig(workers=1)
    coming = execute_all(folders, engine, lambda each: _watches(each, options))
    alone = options.quiet or in_this_process(folders, engine)
    outcomes = list(coming if alone else with_progress(coming, {each: each.name for each in folders}))
    runs = [o.metrics for o in outcomes if o.metrics is not None and o.metrics["tasks_learned"]]
    if runs:
        save_summary(folder, runs)
        if options.json:
            print(json.dumps(runs, indent=1))
        else:
            Console().print(seeds_table(runs))
            print(f"Results are in {folder}")
        if not options.no_report:
            report_after([folder], folder / PAGE, silent=options.json)
    for outcome in outcomes:
        if outcome.error is not None:
            print(f"spacenet: {outcome.folder.name}: {outcome.error}", file=sys.stderr)
    return max(outcome.exit_code for outcome in outcomes)
