"""`spacenet sweep`: search a method's settings on held-out training data."""

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, make_dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console
from tyro.conf import arg

from spacenet.cli.options import MARKERS, absolute, given_settings, peek, stream_of
from spacenet.config.presets import preset
from spacenet.config.run import merge, read_toml, to_toml
from spacenet.data.stream import StreamConfig
from spacenet.data.streams import STREAMS
from spacenet.errors import SettingsError
from spacenet.experiments.batch import Outcome, execute_all
from spacenet.experiments.engines import EngineConfig
from spacenet.experiments.sweep import BEST, Sweep, Trial
from spacenet.methods import method_names
from spacenet.option_types import Flag, OptionalPath
from spacenet.report.tables import table
from spacenet.utils.files import save_text

SHOWN = 10
VALIDATION = 0.16
DESCRIPTION = (
    "Search a method's settings over the ranges that it declares. Trials are scored on held-out training data, never "
    "on the test set. The same command goes on where it stopped."
)


@dataclass(frozen=True)
class SweepOptions:
    """What is searched, and how."""

    stream: Annotated[
        tyro.conf.Positional[str], arg(metavar="STREAM", help=f"What to learn: {', '.join(STREAMS)}; or give --npz.")
    ] = "split-digits"
    method: Annotated[str, arg(metavar="NAME", help=f"Whose settings: {', '.join(method_names())}.")] = "spacenet"
    trials: int = 20
    """How many settings are tried in all."""
    search: Literal["random", "tpe"] = "random"
    """Draw them at random, as the paper did, or where earlier trials did well (optuna's TPE)."""
    seeds: int = 1
    """Seeds per trial; the score is the mean ACC."""
    seed: int = 0
    """Decides which settings are drawn; the runs count up from it."""
    config: OptionalPath = None
    """TOML file with settings that all trials share."""
    out: OptionalPath = None
    """Folder for the search (default: sweeps/STREAM-METHOD)."""
    quiet: Flag = False
    """Show no progress."""

    def __post_init__(self) -> None:
        for name, least in (("trials", 1), ("seeds", 1), ("seed", 0)):
            if getattr(self, name) < least:
                raise SettingsError(f"{name}: {getattr(self, name)} is too small (need {least} or more)")


def sweep(arguments: list[str]) -> int:
    """Carry out `spacenet sweep …`."""
    stream, method = stream_of(arguments), peek(arguments, "method") or "spacenet"
    data = replace(preset(stream, method).data, validation=VALIDATION)
    form = make_dataclass("Form", [("sweep", SweepOptions), ("engine", EngineConfig), ("data", StreamConfig)])
    empty = form(SweepOptions(stream=stream, method=method), EngineConfig(), data)
    filled: Any = tyro.cli(
        form, prog="spacenet sweep", description=DESCRIPTION, args=arguments, default=empty, config=MARKERS
    )
    options: SweepOptions = filled.sweep
    if not filled.data.validation:
        raise SettingsError("validation: a search needs held-out data (0 would be the test set)")
    shared = read_toml(options.config) if options.config else {}
    given = given_settings(absolute(filled.data), preset(stream, method).data)
    base = merge(shared, {"data": given, "seed": options.seed})
    folder = options.out or Path("sweeps") / f"{stream}-{method}"
    search = Sweep(folder, base, stream, method, options.search, options.seed, options.seeds)
    try:
        _search(search, options, filled.engine)
    except KeyboardInterrupt:
        print("\ninterrupted; the same command goes on where it stopped", file=sys.stderr)
        return 130
    return _finish(search, folder)


def _search(search: Sweep, options: SweepOptions, engine: EngineConfig) -> None:
    at_once = engine.workers or os.cpu_count() or 1
    progress = Console(stderr=True, quiet=options.quiet)
    for trial in search.run(options.trials, at_once, partial(_execute, engine)):
        score = "failed" if trial.score is None else f"ACC {trial.score:.2f}"
        progress.print(f"trial {trial.number + 1}/{options.trials}: {score}  {_text(search, trial)}", highlight=False)


def _execute(engine: EngineConfig, folders: Sequence[Path]) -> Iterator[Outcome]:
    return execute_all(folders, engine)


def _finish(search: Sweep, folder: Path) -> int:
    best = search.best()
    if best is None:
        print("spacenet: no trial succeeded; run.log in each trial's folder says why", file=sys.stderr)
        return 1
    scored = sorted((t for t in search.trials() if t.score is not None), key=lambda t: -(t.score or 0.0))
    rows = [[str(trial.number + 1), f"{trial.score:.2f}", _text(search, trial)] for trial in scored[:SHOWN]]
    drawn = table(f"The best of {len(search.trials())} trials (held-out data)", ["trial", "ACC %", "settings"], rows)
    drawn.columns[2].justify, drawn.columns[2].no_wrap = "left", False
    Console(stderr=True).print(drawn)
    settings = to_toml(search.config(best.values, data={"validation": 0.0}))
    save_text(folder / BEST, settings)
    print(settings, end="")
    print(f"The best settings are in {folder / BEST}: spacenet run --config {folder / BEST}", file=sys.stderr)
    return 0


def _text(search: Sweep, trial: Trial) -> str:
    return "  ".join(f"{key.split('.')[1]} {_short(value)}" for key, value in search.plain(trial.values).items())


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
