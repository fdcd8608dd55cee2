"""Many runs: executed by an engine, none repeated that is finished, none lost because another one failed."""

import dataclasses
import logging
import os
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from spacenet.config.engine import EngineConfig
from spacenet.config.model import AUTO
from spacenet.config.run import RunConfig
from spacenet.config.settings import show
from spacenet.data.stream import Stream
from spacenet.errors import FileError, RunError, SpaceFull, SpacenetError
from spacenet.experiments.callbacks import Callback, FileLogger, LineLogger
from spacenet.experiments.clusters import WorkersDied, still_wanted
from spacenet.experiments.engines import launch, run_parallel
from spacenet.experiments.run import (
    CONFIG,
    LOG,
    Run,
    RunData,
    check_labels,
    load_config,
    load_metrics,
    load_run,
    remove_state,
)
from spacenet.registry import register_entries, registered_entries
from spacenet.training.hardware import Hardware, find_hardware

log = logging.getLogger("spacenet")
IGNORED = ("stream.data_dir", "net.graph")
"""Settings that say where data is, not what it is; and the graph of a module, which is found when the run begins."""
OPEN = ("expected_tasks", "phantom_classes", "pooled_covariance")
RESOLVED = ("training.learning_rate", *(f"method.{name}" for name in OPEN))
"""What a run fills in where it is not given."""
MOST_SHOWN = 3
"""Settings that a message names."""


class UnexpectedError(RunError):
    """A run failed because of a fault in the program, in a method or in a callback; that is its cause."""

    exit_code = 1


@dataclass(frozen=True)
class Job:
    """A run to do: its configuration, the user's own stream if there is one, and the folder for its results."""

    config: RunConfig
    stream: Stream | None = None
    folder: Path | None = None
    tag: int = 0
    """Whatever tells the caller's jobs apart."""

    @property
    def label(self) -> str:
        return f"{self.config.model.method} seed {self.config.model.seed}"


@dataclass(frozen=True)
class Outcome:
    """How a job ended: with data, with an error, or, where the network was full, with both."""

    job: Job
    data: RunData | None = None
    error: SpacenetError | None = None

    @property
    def finished(self) -> bool:
        """Whether the whole stream was learned."""
        return self.data is not None and self.error is None


def check_folder(job: Job) -> None:
    """Raise `RunError` if the job's folder holds a run with other settings, or on other tasks."""
    if job.folder is None or not (job.folder / CONFIG).is_file():
        return
    old, new = (config.to_plain() for config in (load_config(job.folder), job.config))
    if found := differing_settings(old, new):
        raise other_settings(f"{job.folder} holds a run with other settings", found)
    metrics = load_metrics(job.folder)
    if metrics is not None and job.stream is not None:
        check_labels(job.folder, [task["labels"] for task in metrics.get("tasks", [])], job.stream)


def differing_settings(old: object, new: object, name: str = "") -> dict[str, tuple[object, object]]:
    """The settings that differ in two configurations as nested mappings: training.epochs, say, with both values."""
    if isinstance(old, dict) and isinstance(new, dict):
        places = {key: f"{name}.{key}".removeprefix(".") for key in sorted({*old, *new})}
        parts = [differing_settings(old.get(key), new.get(key), place) for key, place in places.items()]
        return {name: values for part in parts for name, values in part.items()}
    left_open = (name in RESOLVED and new is None) or (name == "net.name" and new == AUTO)
    return {} if old == new or name in IGNORED or left_open else {name: (old, new)}


def other_settings(fact: str, found: Mapping[str, tuple[object, object]]) -> RunError:
    """The error for a folder that holds something else: the first settings that differ, with both values."""
    names_first = sorted(found, key=lambda name: not name.endswith("name"))
    texts = [f"{name} is {_text(found[name][0])} there, {_text(found[name][1])} here" for name in names_first]
    more = f"; and {len(texts) - MOST_SHOWN} more" if len(texts) > MOST_SHOWN else ""
    return RunError(
        f"{fact}: {'; '.join(texts[:MOST_SHOWN])}{more}.",
        cli="Choose another folder with --out, or remove that one.",
        python="Pass another folder as out, or remove that one.",
    )


def _text(value: object) -> str:
    return "not set" if value is None else show(value)


def default_workers(config: RunConfig) -> int:
    """How many such runs go well at the same time. Two keep a GPU busy."""
    training = config.model.training
    on_gpu = find_hardware(training).device.type == "cuda"
    return 2 if on_gpu else max(1, (os.cpu_count() or 1) // (training.devices * training.threads))


def execute(job: Job, callbacks: Sequence[Callback] = ()) -> Outcome:
    """Do a job, or continue it. A finished run is not repeated, nor one that ended because the space was full."""
    try:
        if (finished := _finished(job)) is not None:
            return finished
        if job.config.model.training.devices > 1:
            return _execute_shared(job, bool(callbacks))
    except SpacenetError as error:
        return Outcome(job, error=error)
    return _attempt(job, job.folder, callbacks)


def _attempt(job: Job, folder: Path | None, callbacks: Sequence[Callback], hardware: Hardware | None = None) -> Outcome:
    try:
        return Outcome(job, Run(job.config, job.stream, folder, callbacks, hardware).execute())
    except SpaceFull as error:
        return Outcome(job, error.result, error)
    except SpacenetError as error:
        return Outcome(job, error=error)
    except OSError as error:  # a full disk, a folder that is gone: no fault of the program
        place = f"{error.filename}: " if error.filename else ""
        return Outcome(job, error=FileError(f"{place}{error.strerror or error}"))
    except Exception as error:  # a fault of ours or of a user's method: the other runs go on
        return Outcome(job, error=_note(job, error))


def _note(job: Job, error: Exception) -> UnexpectedError:
    """Keep where an error happened: in the run's own log, or if it has no folder, in that of the library."""
    where = "the log"
    if job.folder is not None and job.folder.is_dir():
        where = str(job.folder / LOG)
        FileLogger(job.folder / LOG).write(traceback.format_exc())
    else:
        log.error("%s failed:\n%s", job.label, traceback.format_exc())
    noted = UnexpectedError(f"{type(error).__name__}: {error} (an unexpected error; {where} says where)")
    noted.__cause__ = error
    return noted


def _execute_shared(job: Job, show: bool) -> Outcome:
    """Do a job in several processes that share every batch. Its data comes back through its folder or a passing one."""
    with TemporaryDirectory() as passing:
        folder = job.folder or Path(passing)
        error = launch(job.config.model.training, _in_process, job, folder, show)
        data = load_run(folder) if error is None or isinstance(error, SpaceFull) else None
    return Outcome(job, dataclasses.replace(data, folder=job.folder) if data else None, error)


def _in_process(hardware: Hardware, job: Job, folder: Path, show: bool) -> SpacenetError | None:
    """One of several processes that share a run. A live bar cannot be handed over to it, so it logs lines."""
    error = _attempt(job, folder, [LineLogger()] if show else [], hardware).error
    if isinstance(error, SpaceFull):
        error.result = None  # it is in the folder
    return error


def in_this_process(jobs: Sequence[Job], engine: EngineConfig) -> bool:
    """Whether the jobs run one after another in this process, so that callbacks can follow them."""
    return engine.engine == "local" and _workers(jobs, engine) == 1


def _workers(jobs: Sequence[Job], engine: EngineConfig) -> int:
    if len(jobs) == 1:
        return 1
    return min(engine.workers or default_workers(jobs[0].config), len(jobs))


def execute_all(
    jobs: Sequence[Job], engine: EngineConfig, callbacks: Callable[[Job], Sequence[Callback]] = lambda job: ()
) -> Iterator[Outcome]:
    """Do all jobs and yield each outcome as it comes. `callbacks` are used for jobs in this process."""
    if not jobs:
        return
    if in_this_process(jobs, engine):
        yield from (execute(job, callbacks(job)) for job in jobs)
        return
    if engine.engine == "local":
        engine = dataclasses.replace(engine, workers=_workers(jobs, engine))
    left = dict(enumerate(jobs))
    try:
        for number, outcome in run_parallel(partial(_in_worker, registered_entries()), jobs, engine):
            del left[number]
            yield outcome
    except WorkersDied as error:
        yield from _after_loss(error, list(left.values()), len(jobs))


def _after_loss(error: WorkersDied, left: Sequence[Job], count: int) -> Iterator[Outcome]:
    """What became of jobs whose outcomes did not arrive: those that are finished in their folders come first."""
    found = dict[int, Outcome]()
    for position, job in enumerate(left):
        with suppress(SpacenetError):
            if (finished := _finished(job)) is not None:
                found[position] = finished
    yield from found.values()
    missing = len(left) - len(found)
    message = f"{error.message}; {count - missing} of {count} runs are finished."
    told = type(error)(message, cli="The same command continues.", python="The same call continues.")
    told.__cause__ = error
    yield from (Outcome(job, error=told) for position, job in enumerate(left) if position not in found)


def is_finished(job: Job) -> bool:
    """Whether the job's folder holds its outcome already."""
    return job.folder is not None and load_metrics(job.folder) is not None


def _finished(job: Job) -> Outcome | None:
    """The outcome that is in the job's folder already, if it is."""
    metrics = load_metrics(job.folder) if job.folder is not None else None
    if metrics is None or job.folder is None:
        return None
    remove_state(job.folder)  # left where a run was killed right at its end
    stopped = metrics["stopped"]
    return Outcome(job, load_run(job.folder), SpaceFull(stopped, layer="") if stopped else None)


class StopUnwanted(Callback):
    """Ends a run on a cluster whose client has gone: the client's next try would write into the same folder."""

    def on_batch_end(self, task: int, done: int, total: int) -> None:
        if not still_wanted():
            raise RunError("the process that asked for this run is gone; what was saved is kept")


def _in_worker(entries: dict[str, dict[str, Any]], job: Job) -> Outcome:
    register_entries(entries)  # methods and networks of a notebook are not there in a fresh process
    shared = job.config.model.training.devices > 1  # its processes have no way to ask
    return execute(job, [] if shared else [StopUnwanted()])
