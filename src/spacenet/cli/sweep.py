"""`spacenet sweep`: search a method's settings on held-out training data."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from annotated_types import Ge
from rich.console import Console
from tyro.conf import arg

from spacenet import api
from spacenet.cli.assignments import Assignments, parse_assignments
from spacenet.cli.folders import default_folder
from spacenet.cli.options import METHOD_NAMES, EncoderOption, StreamOptions, parse_stream_command, peek
from spacenet.config.run import read_toml


@dataclass(frozen=True)
class SweepOptions(StreamOptions):
    """Search a method's settings over the ranges that it declares. Trials are scored on held-out training data, never
    on the test set. A setting that is given is not searched. The same command continues where it stopped.
    """

    method: Annotated[str, arg(metavar="NAME", help=f"Whose settings: {METHOD_NAMES}.")] = "spacenet"
    trials: Annotated[int, Ge(1)] = 20
    """How many settings are tried in all."""
    search: Literal["random", "tpe"] = "random"
    """Draw them at random, as the paper did, or where earlier trials did well (optuna's TPE)."""
    seeds: Annotated[int, Ge(1)] = 1
    """Seeds per trial; the score is the mean ACC."""
    encoder: EncoderOption = None
    set: Annotated[
        Assignments,
        arg(
            metavar="NAME=VALUE",
            help="A setting that all trials share (epochs=3); may be given several times.",
            help_behavior_hint="",
        ),
    ] = ()
    out: Path | None = None
    """Folder for the search (default: sweeps/STREAM-METHOD, with the cut and other settings in its name)."""


def sweep(arguments: list[str]) -> int:
    selection = {**peek(arguments), "config": {}}
    options, engine, selection, settings = parse_stream_command(
        SweepOptions, arguments, "sweep", selection, settings={"validation": api.VALIDATION}
    )
    stream, method = selection["stream"], selection["method"]
    common, own = parse_assignments(options.set, [method])
    settings |= common | own.get(method, {}) | ({"encoder": options.encoder} if options.encoder else {})
    of_file = {"config": read_toml(options.config, method)} if options.config else {}
    folder = options.out or default_folder("sweeps", f"{api.stream_name(stream)}-{method}", {**settings, **of_file})
    progress = Console(stderr=True, quiet=options.quiet)

    def show(trial: api.Trial) -> None:
        score = "failed" if trial.score is None else f"ACC {trial.score:.2f}"
        progress.print(f"trial {trial.number + 1}/{options.trials}: {score}  {trial}", highlight=False)

    given = {name: getattr(options, name) for name in ("trials", "search", "seeds", "seed", "config")}
    given |= {"out": folder, "on_trial": show, **vars(engine), **settings}
    result = api.sweep(stream, method, **given)
    for table in result.tables():
        Console(stderr=True).print(table)
    print(result.best.to_toml(), end="")
    print(f"The best settings are in {folder / api.BEST}: spacenet run --config {folder / api.BEST}", file=sys.stderr)
    return 0
