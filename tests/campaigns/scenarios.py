"""What the fault-injection campaign attacks: every command that reads or writes files, on tiny data.

A scenario works in a folder that `prepare` has filled: clouds.npz, new.npz (two more classes), model.safetensors, the
finished run `made`, and the run `begun`, which was killed.
"""

import contextlib
import functools
import importlib
import inspect
import io
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from types import TracebackType
from typing import Any, cast

import numpy as np

from spacenet import registry
from spacenet.cli.main import COMMANDS, main
from spacenet.errors import SpacenetError
from spacenet.model.estimator import load
from spacenet.model.file import load_model, to_bytes
from spacenet.report.plots.plot import Plot
from spacenet.serve import store as store_module
from spacenet.serve import worker
from spacenet.serve.history import SUFFIX
from spacenet.serve.jobs import Jobs, Process
from spacenet.serve.messages import RequestError
from spacenet.serve.queued import QueuedJob
from spacenet.serve.store import Store
from spacenet.utils.lock import lock
from tests.campaigns.faults import KILLED, Faults, in_child, inject, paused
from tests.support import clouds, clouds_file

MODEL, EDITED = "model.safetensors", "edited.safetensors"
SMALL = ("--epochs", "1", "--quiet")
NET = ("--hidden", "60", "--selected", "10", "--reserved", "4", "--connections", "40", "16")
TASKS = ("--tasks", "0,1/2,3")
IMPORTED = (
    *(f"spacenet.cli.{command}" for command in COMMANDS),
    *("spacenet.report.page.build", "matplotlib.figure", "matplotlib.backends.backend_svg"),
    *("matplotlib.backends.backend_agg", "optuna.storages.journal", "optuna.samplers"),
)
"""Modules that are imported once, before processes are forked."""
Work = Callable[[Path], int]


@dataclass(frozen=True)
class Scenario:
    """Something to do in a folder, with the exit code as its result."""

    name: str
    work: Work
    again: Work | None = None
    """The second try, where that is something else."""
    passing: tuple[str, ...] = ()
    """Patterns of files that may be in any state while the work is not done."""
    timed: tuple[str, ...] = ()
    """Patterns of files that hold times: two runs do not make the same bytes."""
    told: tuple[str, ...] = ()
    """Patterns of JSON files that say what has happened, faults and times included; they need not be written."""
    once: bool = False
    """Whether a second try after a success would add the task again."""
    last: int | None = None
    """Only so many operations at the end are attacked: those before them are another scenario's too."""
    in_turn: bool = False
    """Whether the kinds of faults take turns, where there are very many operations."""
    warm: Work | None = None
    """What is done once before processes are forked, to save them time."""


def prepare(folder: Path) -> None:
    """Fill a folder."""
    clouds_file(folder, per_class=10)
    (folder / "quick.toml").write_text("[training]\nepochs = 1\n[net]\nhidden = [20]\n")
    if _in_child(lambda: main(_run_arguments(folder, "made", "--no-report"))) != 0:
        raise RuntimeError("a run failed")
    if _in_child(lambda: _begin(folder)) != KILLED:
        raise RuntimeError("a run was not killed")
    shutil.copy(folder / "made" / MODEL, folder / MODEL)
    (folder / MODEL).chmod(0o640)
    shutil.copy(folder / MODEL, folder / EDITED)
    if _in_child(lambda: main(["edit", str(folder / EDITED), "rename", "0", "zero"])) != 0:
        raise RuntimeError("a model was not edited")
    data = clouds(per_class=10)
    rows = data.y_train >= 4
    np.savez(folder / "new.npz", x=data.x_train[rows], y=data.y_train[rows])
    table = np.column_stack([data.y_train[rows], data.x_train[rows].reshape(rows.sum(), -1)])
    header = ",".join(["y", *(f"x{number}" for number in range(1, table.shape[1]))])
    np.savetxt(folder / "table.csv", table, "%.6g", ",", header=header, comments="")


class _KilledLater(Faults):
    """Ends the process when the third state of a run is to get its name: in the second task."""

    def note(self, operation: str, path: str, begin: Callable[[], object] = lambda: None, to: str = "") -> None:
        super().note(operation, path, begin, to)
        if sum(each.endswith("to state.safetensors") for each in self.operations) == 3:
            os._exit(KILLED)


def _begin(folder: Path) -> int:
    with inject(_KilledLater(folder)):
        return main(_run_arguments(folder, "begun", "--no-report"))


def _in_child(work: Callable[[], int]) -> int:
    def silent() -> int:
        with contextlib.redirect_stdout(io.StringIO()):
            return work()

    return in_child(silent)


# Commands


def command(*arguments: str) -> Work:
    """A command; names in braces are those of files in the folder."""
    return lambda folder: main([a.replace("{", f"{folder}/").replace("}", "") for a in arguments])


def _run_arguments(folder: Path, name: str, *more: str) -> list[str]:
    data = (str(folder / "clouds.npz"), "--out", str(folder / name))
    return ["run", *data, *TASKS, *SMALL, *NET, *more]


def _run(*more: str) -> Work:
    return lambda folder: main(_run_arguments(folder, "run", *more))


def _run_again(*more: str) -> Work:
    def again(folder: Path) -> int:
        if (folder / "run" / "config.toml").exists():
            return main(["run", "--resume", str(folder / "run"), "--quiet", *more])
        return _run(*more)(folder)

    return again


def _fit(*arguments: str) -> tuple[Work, Work]:
    """Making a model, and its second try: `fit` replaces no file, so one that a kill has left complete is removed."""
    fit = command("fit", *arguments, "--out", "{first.safetensors}", *SMALL)

    def again(folder: Path) -> int:
        (folder / "first.safetensors").unlink(missing_ok=True)
        return fit(folder)

    return fit, again


def _edit(*arguments: str) -> tuple[Work, Work]:
    """An edit after which there is no class "zero", and its second try: there is nothing to do if it was done."""
    edit = command("edit", f"{{{EDITED}}}", *arguments)

    def again(folder: Path) -> int:
        with lock(folder / EDITED):
            return edit(folder) if "zero" in load_model(folder / EDITED).classes else 0

    return edit, again


# Python


def _told(work: Work) -> Work:
    """In Python every error of the file system must be one of spacenet's."""

    def call(folder: Path) -> int:
        try:
            return work(folder)
        except SpacenetError as error:
            print(f"spacenet: {error}", file=sys.stderr)
            return error.exit_code

    return call


def _learned(folder: Path) -> Any:
    with paused():
        estimator = load(folder / MODEL)
        with np.load(folder / "new.npz") as data:
            estimator.partial_fit(data["x"], data["y"])
    return estimator


def _save(folder: Path) -> int:
    _learned(folder).save(folder / MODEL)
    return 0


def _save_twice(folder: Path) -> int:
    """A fault that passes: the same process saves again."""
    estimator = _learned(folder)
    try:
        estimator.save(folder / MODEL)
    except SpacenetError:
        estimator.save(folder / MODEL)
    return 0


# The service


class _WorkerHere:
    """The worker process of the service, in this process: its faults are counted with those of the service."""

    def __init__(self, arguments: list[str]) -> None:
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            try:
                self.returncode = worker.main(arguments)
            except Exception:
                self.returncode = 1
        self.stdout = io.StringIO(said.getvalue())

    def __enter__(self) -> "_WorkerHere":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        return None

    def kill(self) -> None: ...


class _Jobs(Jobs):
    def start_process(self, current: QueuedJob) -> Process:
        return cast(Process, _WorkerHere(list(map(str, (self.store.path, current.data, current.new)))))


def _serve(submit: Callable[[Jobs, Path], Any], tries: int) -> Work:
    """Let a service do a job, in so many tries; then what it answers must be what its file says."""

    def work(folder: Path) -> int:
        setattr(store_module, "LOOK_SECONDS", float("inf"))  # noqa: B010  # another thread would use the file
        store = Store(folder / MODEL)
        jobs = _Jobs(store)
        for number in [job.number for job in jobs.list()]:  # those that a killed service has left
            jobs.wait(number)
        for _ in range(tries):
            if any(job.state == "done" for job in jobs.list()):
                break
            with contextlib.suppress(RequestError):  # the job says why
                jobs.wait(submit(jobs, folder).number)
        jobs.close()
        last = next(iter(jobs.list()), None)
        with paused():
            if to_bytes(store.current.model) != (folder / MODEL).read_bytes():
                print("the service answers with another model than the one in its file")
                return 70
        if last is None or last.error:
            print(f"spacenet: {last.error if last else 'the job was not accepted'}", file=sys.stderr)
        return 0 if last is not None and last.state == "done" else 1

    return _told(work)


def _submit_task(jobs: Jobs, folder: Path) -> Any:
    with paused(), np.load(folder / "new.npz") as data:
        x, y = data["x"], data["y"]
    return jobs.submit_learn(x, y)


def _submit_edit(jobs: Jobs, folder: Path) -> Any:
    return jobs.submit_edit("forget", [jobs.store.current.classes[0]])


def _draw_nothing(folder: Path) -> int:
    """Drawing touches no files and takes seconds: plots are empty."""

    def render(plot: Plot, **options: Any) -> bytes:
        return f'<svg viewBox="0 0 1 1"><title>{plot.name}</title></svg>'.encode()

    setattr(Plot, "_render", render)  # noqa: B010
    return command("report", "{made}", "--out", "{warm.html}")(folder)


def _export_once(name: str) -> Work:
    """Exporters take seconds to import and to prepare."""
    return command("export", f"{{{MODEL}}}", "--to", name, "--out", "{warm}")


CACHED: tuple[tuple[Any, str, Any], ...] = (
    (inspect, "getsource", functools.cache(inspect.getsource)),
    (registry, "entry_points", functools.cache(entry_points)),
)
"""Forms are made of the source of classes and of what packages offer; neither changes."""


@contextlib.contextmanager
def fast_forms() -> Iterator[None]:
    """Make the forms of commands from what was read before."""
    before = [getattr(module, name) for module, name, _ in CACHED]
    for module, name, function in CACHED:
        setattr(module, name, function)
    try:
        yield
    finally:
        for (module, name, _), function in zip(CACHED, before, strict=True):
            setattr(module, name, function)


def parse_once(folder: Path) -> None:
    """Make all forms once. The commands end as there is no such file."""
    missing, here = ("{missing.npz}", "--out", "{warm}"), ("--workers", "1", "--quiet")
    command("run", *missing)(folder)
    command("compare", *missing, *here, "--methods", "naive")(folder)
    command("sweep", *missing, *here, "--method", "naive", "--trials", "1")(folder)
    command("learn", "{missing}", *missing)(folder)


def import_once() -> None:
    """Import what the scenarios need."""
    for name in IMPORTED:
        importlib.import_module(name)


RUN_PASSING = ("*/state.safetensors", "*/analysis.safetensors", "*/run.log")
JOBS = (MODEL + SUFFIX,)
RUN_TIMED = ("*/metrics.json", "*/run.log", "*/report.html")
COMPARED = ("{clouds.npz}", "--config", "{quick.toml}", *TASKS, "--quiet", "--workers", "1")
SCENARIOS = (
    Scenario("run", _run("--no-report"), _run_again("--no-report"), RUN_PASSING, RUN_TIMED, in_turn=True),
    Scenario("run with report", _run(), _run_again(), RUN_PASSING, RUN_TIMED, last=12, warm=_draw_nothing),
    Scenario(
        *("run --resume", command("run", "--resume", "{begun}", "--no-report", "--quiet"), None),
        *(RUN_PASSING, RUN_TIMED),
        in_turn=True,
    ),
    Scenario(
        "compare",
        command("compare", *COMPARED, "--methods", "naive,spacenet", "--out", "{out}", "--no-report"),
        passing=(*RUN_PASSING, "out/comparison.*"),
        timed=(*RUN_TIMED, "out/comparison.*"),
        in_turn=True,
    ),
    Scenario(
        "sweep",
        command("sweep", *COMPARED, "--method", "naive", "--trials", "2", "--out", "{out}"),
        passing=(*RUN_PASSING, "out/journal.log"),
        timed=(*RUN_TIMED, "out/journal.log"),
        in_turn=True,
    ),
    Scenario("fit", *_fit("{clouds.npz}", *TASKS, *NET)),
    Scenario("fit of a table", *_fit("{table.csv}", "--label", "y")),
    Scenario("learn", command("learn", f"{{{MODEL}}}", "{new.npz}", *SMALL), once=True),
    Scenario("learn --out", command("learn", f"{{{MODEL}}}", "{new.npz}", "--out", "{two.safetensors}", *SMALL)),
    Scenario("edit", *_edit("merge", "zero", "1", "--into", "2"), once=True),
    Scenario("edit forget", *_edit("forget", "zero"), once=True),
    Scenario("edit undo", *_edit("undo"), once=True),
    Scenario(
        "predict --out",
        command("predict", f"{{{MODEL}}}", "{clouds.npz}", "--out", "{found.csv}", "--format", "csv"),
    ),
    Scenario("inspect", command("inspect", f"{{{MODEL}}}")),
    Scenario("evaluate", command("evaluate", f"{{{MODEL}}}", "{clouds.npz}", "--quiet")),
    Scenario(
        "evaluate --out",
        command("evaluate", f"{{{MODEL}}}", "{clouds.npz}", "--out", "{page.html}", "--quiet"),
        timed=("page.html",),
        warm=_draw_nothing,
    ),
    Scenario("report", command("report", "{made}", "--out", "{page.html}"), warm=_draw_nothing),
    Scenario(
        "report --figures",
        command("report", "{made}", "--figures", "{figures}"),
        last=20,
        in_turn=True,
        warm=_draw_nothing,
    ),
    Scenario("export --to torch", command("export", f"{{{MODEL}}}", "--to", "torch"), warm=_export_once("torch")),
    Scenario(
        *("export --to onnx", command("export", f"{{{MODEL}}}", "--to", "onnx")),
        in_turn=True,
        warm=_export_once("onnx"),
    ),
    Scenario("estimator.save", _told(_save), once=True),
    Scenario("estimator.save, twice", _told(_save_twice), once=True),
    Scenario("service", _serve(_submit_task, 1), once=True, told=JOBS),
    Scenario("service, twice", _serve(_submit_task, 2), once=True, in_turn=True, told=JOBS),
    Scenario("service edit", _serve(_submit_edit, 1), once=True, told=JOBS),
)
