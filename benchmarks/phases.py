"""Where the time of a run goes. The package's functions are wrapped with timers from outside, while it lasts."""

import functools
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from benchmarks.compare import timed_run
from benchmarks.workload import Workload
from spacenet.data.stream import Stream
from spacenet.experiments import run as run_module
from spacenet.experiments.callbacks import FileLogger
from spacenet.experiments.run import Run
from spacenet.methods.shared.sparse import AdaptiveMethod, SparseMethod
from spacenet.report.tables import Table
from spacenet.space.opening import FrozenInputs

Figures = dict[str, Any]
REST = "everything else"
PHASES: dict[str, list[tuple[Any, str]]] = {
    "data: read and check": [(run_module, "build_stream")],
    "data: cut and normalize": [(Stream, "samples")],
    "allocate, open workspaces": [(SparseMethod, "begin_task")],
    "inputs from frozen units": [(FrozenInputs, "precompute")],
    "loop: pick batches, count correct ones": [(run_module, "learn_task")],
    "forward": [(SparseMethod, "forward")],
    "loss": [(SparseMethod, "loss")],
    "backward": [(SparseMethod, "backward")],
    "optimizer step, importance": [(SparseMethod, "step")],
    "rewiring": [(AdaptiveMethod, "end_epoch")],
    "commit and reserve": [(SparseMethod, "end_task")],
    "evaluation": [(Run, "_evaluate")],
    "saving": [(Run, "_save"), (Run, "_finish")],
    "log": [(FileLogger, "_append")],
}
"""For each phase the functions that make it up. A phase within another counts for itself and not for the outer one."""


class Stopwatch:
    """Gives every moment to the phase that was entered last and not left."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.calls: Counter[str] = Counter()
        self._open = [REST]
        self._since = time.perf_counter()

    def wrap(self, phase: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            self._turn()
            self._open.append(phase)
            self.calls[phase] += 1
            try:
                return function(*args, **kwargs)
            finally:
                self._turn()
                self._open.pop()

        return timed

    def start(self) -> None:
        self._since = time.perf_counter()

    def stop(self) -> None:
        """Give the last moments to their phase."""
        self._turn()

    def _turn(self) -> None:
        now = time.perf_counter()
        self.seconds[self._open[-1]] += now - self._since
        self._since = now


@contextmanager
def stopwatch() -> Iterator[Stopwatch]:
    """A stopwatch on all phases; the functions are themselves again afterwards."""
    with ExitStack() as stack:
        callback = Stopwatch()
        for phase, functions in PHASES.items():
            for owner, name in functions:
                # vars() and not getattr: a name that a class only inherits is a mistake in PHASES.
                stack.enter_context(patch.object(owner, name, callback.wrap(phase, vars(owner)[name])))
        callback.start()
        yield callback
        callback.stop()


def profile(work: Workload, runs: int) -> Figures:
    """Mean over some runs of what each phase takes; they add up to the whole."""
    timed_run(work.config)  # warm up
    unwatched, callbacks = 0.0, []
    for _ in range(runs):
        unwatched += timed_run(work.config)[0]
        with stopwatch() as callback:
            timed_run(work.config)
        callbacks.append(callback)
    phases = {
        phase: {
            "ms": 1000 * sum(callback.seconds[phase] for callback in callbacks) / runs,
            "calls": sum(callback.calls[phase] for callback in callbacks) / runs,
        }
        for phase in (*PHASES, REST)
    }
    total = sum(phase["ms"] for phase in phases.values())
    return {"runs": runs, "phases": phases, "total_ms": total, "unwatched_ms": 1000 * unwatched / runs}


def profile_table(figures: Figures) -> Table:
    total = figures["total_ms"]
    rows = [
        [
            name,
            f"{phase['calls']:,.0f}" if phase["calls"] else "",
            f"{phase['ms']:,.1f}",
            f"{100 * phase['ms'] / total:.1f}",
        ]
        for name, phase in figures["phases"].items()
    ]
    ratio = total / figures["unwatched_ms"]
    rows.append(["the whole run", "", f"{total:,.1f}", "100.0"])
    rows.append(["the same without timers", "", f"{figures['unwatched_ms']:,.1f}", f"(ratio {ratio:.3f})"])
    title = f"Where the time of one compact run goes, mean of {figures['runs']}"
    return Table(title, ["phase", "calls", "ms", "%"], rows)
