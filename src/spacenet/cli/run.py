"""`spacenet run`: learn a stream, once or with several seeds, or continue what was interrupted."""

import json
import sys
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import arg

from spacenet import api
from spacenet.cli.options import METHOD_NAMES, StreamOptions, parse_stream_command, peek
from spacenet.cli.output import end_command, print_tables
from spacenet.config.engine import EngineConfig
from spacenet.errors import RunError, SettingsError, SpaceFull
from spacenet.utils.processes import describe_interrupt

GROUPS = ("stream", "network", "training", "preprocessing", "method")


@dataclass(frozen=True)
class RunOptions(StreamOptions):
    """Learn a stream of tasks, one after another, and measure what is remembered. Defaults are the stream's preset for
    the method; --method NAME --help shows that method's own settings.
    """

    method: Annotated[str, arg(metavar="NAME", help=f"How to learn it: {METHOD_NAMES}.")] = "spacenet"
    net: str | None = None
    """Another network than the preset's: mlp, small-cnn, resnet-18, wrn-DEPTH-WIDTH, or a registered name."""
    preset: str | None = None
    """Preset of the stream, where it has several: small-cnn, wrn-28-10, expanded, …"""
    out: Path | None = None
    """Folder for the results (default: a new one in runs/)."""
    resume: Path | None = None
    """Continue the interrupted run in this folder; needs nothing else."""
    json: bool = False
    """Print the metrics as JSON instead of tables."""
    tensorboard: bool = False
    """Write scalars during the run, and the plots in the end, to DIR/tensorboard (seeds then run one by one)."""
    no_report: bool = False
    """Write no HTML report (report.html) in the end."""


def run(arguments: list[str]) -> int:
    options, engine, selection, settings = parse_stream_command(RunOptions, arguments, "run", peek(arguments), GROUPS)
    folder = options.resume or options.out or _new_folder(api.stream_name(selection["stream"]), selection["method"])
    if options.resume is not None:
        if settings or options.out or options.config or options.seeds > 1:
            reason = "settings come from the folder; only --workers, --json and --quiet go with it"
            raise SettingsError(reason, setting="resume")
    elif (folder / api.CONFIG).exists() or (api.seed_folders(folder) and options.seeds == 1):
        remedy = f"Continue it with --resume {folder}, or choose another --out."
        raise RunError(f"{folder} holds a run already.", cli=remedy)
    callbacks = api.tensorboard_callbacks() if options.tensorboard else ()
    common: dict[str, Any] = {"callbacks": callbacks, "progress": not options.quiet}
    if options.tensorboard and options.resume is None:  # it follows runs live, so in this process
        engine = EngineConfig(workers=1)
    try:
        if options.resume is not None:
            result: Any = api.resume(folder, engine=engine, **common)
        else:
            common |= {"seed": options.seed, "seeds": options.seeds if options.seeds > 1 else None, **vars(engine)}
            result = api.run(**selection, out=folder, **common, **settings)
    except SpaceFull as error:
        if error.result is not None:
            _show(error.result, options, folder)
        raise
    except KeyboardInterrupt as error:
        what, code = describe_interrupt(error)
        print(f"\n{what}; continue with: spacenet run --resume {folder}", file=sys.stderr)
        return code
    return _show(result, options, folder)


def _new_folder(stream: str, method: str) -> Path:
    base = Path("runs") / f"{datetime.now():%Y%m%d-%H%M%S}-{stream}-{method}"
    others = (base.with_name(f"{base.name}-{number}") for number in range(2, 1000))
    return next(folder for folder in (base, *others) if not folder.exists())


def _show(result: Any, options: RunOptions, folder: Path) -> int:
    if options.json:
        runs = [run.metrics for run in result] if isinstance(result, api.SeedResults) else result.metrics
        print(json.dumps(runs, indent=1))
    else:
        print_tables(result.tables())
        print(f"Results are in {folder}")
    return end_command(result, folder, report=not options.no_report, silent=options.json)
