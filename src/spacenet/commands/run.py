"""`spacenet run`: learn a stream, once or with several seeds, or go on with what was interrupted."""

import dataclasses
import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, make_dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.live import Live
from tyro.conf import arg

from spacenet.datasets.sources import DATA_VARIABLE
from spacenet.errors import RunError, SettingsError
from spacenet.experiments.config import RunConfig, read_toml
from spacenet.experiments.presets import BENCHMARKS, preset
from spacenet.experiments.run import CONFIG, LOG, check, create_folder
from spacenet.experiments.seeds import Outcome, create_folders, execute_all, save_summary, seed_folders, usual_workers
from spacenet.experiments.watch import BarWatch, LineWatch, LogsView, Watch, print_line
from spacenet.methods import method_named, method_names
from spacenet.option_types import Flag, OptionalInt, OptionalPath, OptionalText
from spacenet.report.tables import run_report, seeds_table
from spacenet.streams import NPZ, STREAMS

PLAIN_PAUSE = 2.0
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
    workers: OptionalInt = None
    """Processes that run seeds at the same time (default: one for each processor core; two if a GPU does the work)."""
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

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise SettingsError(f"seed: {self.seed} is negative")
        for name, value in (("seeds", self.seeds), ("workers", self.workers)):
            if value is not None and value < 1:
                raise SettingsError(f"{name}: {value} is too small (need 1 or more)")


def run(arguments: list[str]) -> int:
    """Carry out `spacenet run …`."""
    options, config, given = _parse(arguments)
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
        return _execute_several(folder, several, options) if several else _execute_one(folder, options)
    except KeyboardInterrupt:
        print(f"\ninterrupted; go on with: spacenet run --resume {folder}", file=sys.stderr)
        return 130


def _parse(arguments: list[str]) -> tuple[RunOptions, RunConfig, bool]:
    """Options of the run, its config, and whether any of the config was given on the command line."""
    file = _peek(arguments, "config")
    from_file = read_toml(Path(file)) if file else {}
    named = next((argument for argument in arguments if argument in STREAMS), None)
    stream = NPZ if _peek(arguments, "npz") else named or from_file.get("stream", "split-digits")
    method = _peek(arguments, "method") or from_file.get("method", "spacenet")
    if method != from_file.get("method"):
        from_file.pop("options", None)  # they are another method's
    net = _peek(arguments, "net")
    variant = _peek(arguments, "preset") or (net if net in BENCHMARKS.get(stream, {}) else None)
    default = preset(stream, method, from_file, {"net": {"net": net}} if net else {}, variant=variant)
    kinds: dict[str, type] = {
        "run": RunOptions,
        "data": type(default.data),
        "net": type(default.net),
        "training": type(default.training),
        "method": method_named(method).Settings,
    }
    form = make_dataclass("Form", kinds.items())
    run = RunOptions(stream=stream, method=method, seed=default.seed)
    empty = form(run, default.data, default.net, default.training, default.options)
    markers = (tyro.conf.OmitArgPrefixes, tyro.conf.FlagCreatePairsOff)
    filled: Any = tyro.cli(
        form, prog="spacenet run", description=DESCRIPTION, args=arguments, default=empty, config=markers
    )
    options: RunOptions = filled.run
    stream = options.stream if filled.data.npz is None else NPZ
    config = RunConfig(
        stream, options.method, options.seed, filled.data, filled.net, filled.training, options=filled.method
    )
    return options, dataclasses.replace(config, data=_absolute(config.data)), config != default


def _peek(arguments: Sequence[str], option: str) -> str | None:
    """The value of an option that decides which others there are."""
    for argument, following in zip(arguments, [*arguments[1:], ""], strict=True):
        if argument == f"--{option}":
            return following
        if argument.startswith(f"--{option}="):
            return argument.split("=", 1)[1]
    return None


def _absolute(data: Any) -> Any:
    """Paths as they hold from any folder, so that a run can be resumed from anywhere."""
    folder = data.data_dir or os.environ.get(DATA_VARIABLE)
    return dataclasses.replace(
        data,
        npz=data.npz and data.npz.resolve(),
        data_dir=Path(folder).resolve() if folder else None,
    )


def _new_folder(config: RunConfig) -> Path:
    base = Path("runs") / f"{datetime.now():%Y%m%d-%H%M%S}-{config.stream}-{config.method}"
    others = (base.with_name(f"{base.name}-{number}") for number in range(2, 1000))
    return next(folder for folder in (base, *others) if not folder.exists())


def _watch(options: RunOptions) -> list[Watch]:
    if options.quiet:
        return []
    console = Console(stderr=True)
    return [BarWatch(console) if console.is_terminal else LineWatch(print_line, PLAIN_PAUSE)]


def _execute_one(folder: Path, options: RunOptions) -> int:
    (outcome,) = execute_all([folder], 1, lambda: _watch(options))
    if outcome.metrics is not None:
        if options.json:
            print(json.dumps(outcome.metrics, indent=1))
        else:
            Console().print(run_report(outcome.metrics))
            print(f"Results are in {folder}")
    if outcome.error is not None:
        print(f"spacenet: {outcome.error}", file=sys.stderr)
    return outcome.exit_code


def _execute_several(folder: Path, folders: Sequence[Path], options: RunOptions) -> int:
    workers = min(options.workers or usual_workers(folders[0]), len(folders))
    coming = execute_all(folders, workers, lambda: _watch(options))
    outcomes = list(coming if options.quiet or workers == 1 else _shown(coming, folders))
    runs = [o.metrics for o in outcomes if o.metrics is not None and o.metrics["tasks_learned"]]
    if runs:
        save_summary(folder, runs)
        if options.json:
            print(json.dumps(runs, indent=1))
        else:
            Console().print(seeds_table(runs))
            print(f"Results are in {folder}")
    for outcome in outcomes:
        if outcome.error is not None:
            print(f"spacenet: {outcome.folder.name}: {outcome.error}", file=sys.stderr)
    return max(outcome.exit_code for outcome in outcomes)


def _shown(outcomes: Iterable[Outcome], folders: Sequence[Path]) -> Iterator[Outcome]:
    """The outcomes, and a look at the runs while they go on out of sight in other processes."""
    console = Console(stderr=True)
    view = LogsView([folder / LOG for folder in folders])
    live = Live(view, console=console, transient=True) if console.is_terminal else nullcontext()
    with live:
        for outcome in outcomes:
            view.done += 1
            metrics = outcome.metrics
            text = f"ACC {metrics['acc']:.2f}, BWT {metrics['bwt']:.2f}" if metrics and "acc" in metrics else "failed"
            console.print(f"{outcome.folder.name} finished: {text}", highlight=False)
            yield outcome
