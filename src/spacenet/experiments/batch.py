"""Many runs: carried out where an engine says, none repeated that is finished, none lost because another failed."""

import dataclasses
import os
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spacenet.errors import SpacenetError
from spacenet.experiments.callbacks import Callback, FileLogger, LineLogger, print_line
from spacenet.experiments.engines import EngineConfig, WorkersDied, run_parallel
from spacenet.experiments.launch import launch
from spacenet.experiments.run import LOG, Run, load_config, load_metrics
from spacenet.training.hardware import Hardware, find_hardware


@dataclass(frozen=True)
class Outcome:
    """How one run ended: with metrics, or with an error for people."""

    folder: Path
    metrics: dict[str, Any] | None = None
    error: str | None = None
    exit_code: int = 0


def usual_workers(folder: Path) -> int:
    """How many runs like the one in the folder go well at the same time. A GPU is kept busy by two."""
    training = load_config(folder).training
    on_gpu = find_hardware(training).device.type == "cuda"
    return 2 if on_gpu else max(1, (os.cpu_count() or 1) // (training.devices * training.threads))


def execute(folder: Path, callbacks: Sequence[Callback] = ()) -> Outcome:
    """Run, or go on with, what a folder holds. A finished run is not repeated."""
    try:
        metrics = load_metrics(folder)
        if metrics is not None and not metrics["stopped"]:
            return Outcome(folder, metrics)
        training = load_config(folder).training
        if training.devices > 1:
            return launch(training, _in_process, folder, bool(callbacks))
    except SpacenetError as error:
        return Outcome(folder, load_metrics(folder), str(error), error.exit_code)
    return _attempt(folder, callbacks)


def _attempt(folder: Path, callbacks: Sequence[Callback], hardware: Hardware | None = None) -> Outcome:
    try:
        return Outcome(folder, Run(folder, callbacks, hardware).execute())
    except SpacenetError as error:
        return Outcome(folder, load_metrics(folder), str(error), error.exit_code)
    except Exception as error:  # a fault of ours or of a method from outside: the other runs go on
        FileLogger(folder / LOG).write(traceback.format_exc())
        reason = f"{type(error).__name__}: {error} (a fault in the program; {folder / LOG} says where)"
        return Outcome(folder, load_metrics(folder), reason, 1)


def _in_process(hardware: Hardware, folder: Path, shown: bool) -> Outcome:
    """One of several processes that share a run. A bar cannot be handed over to it, so it prints lines."""
    return _attempt(folder, [LineLogger(print_line)] if shown else [], hardware)


def in_this_process(folders: Sequence[Path], engine: EngineConfig) -> bool:
    """Whether the runs come one after another in this process, so that they can be watched live."""
    return engine.engine == "local" and _workers(folders, engine) == 1


def _workers(folders: Sequence[Path], engine: EngineConfig) -> int:
    return min(engine.workers or usual_workers(folders[0]), len(folders))


def execute_all(
    folders: Sequence[Path], engine: EngineConfig, callback: Callable[[Path], Sequence[Callback]] = lambda folder: ()
) -> Iterator[Outcome]:
    """Run all of them and yield each outcome as it comes. A run without a result says why.

    Runs in this process are watched by what `callback` gives for their folder.
    """
    if not folders:
        return
    if in_this_process(folders, engine):
        yield from (execute(folder, callback(folder)) for folder in folders)
        return
    if engine.engine == "local":
        engine = dataclasses.replace(engine, workers=_workers(folders, engine))
    left = set(folders)
    try:
        for outcome in run_parallel(execute, folders, engine):
            left.discard(outcome.folder)
            yield outcome
    except WorkersDied as error:
        for folder in folders:
            if folder in left:
                yield Outcome(folder, load_metrics(folder), str(error), error.exit_code)
