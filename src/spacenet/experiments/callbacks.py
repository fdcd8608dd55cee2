"""Callbacks: what is called while a run goes on. Lines in a log, a progress bar, or whatever a user writes."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spacenet.config.run import RunConfig
from spacenet.data.stream import Stream
from spacenet.data.stream_views import count_samples
from spacenet.experiments.metrics import Record, mean_so_far
from spacenet.training.loop import Epoch

if TYPE_CHECKING:
    from rich.console import Console

REFRESH_SECONDS = 0.1
LINE_SECONDS = 2.0
"""Between lines about epochs, where lines are printed instead of a bar."""
SILENCE_SECONDS = 10.0
"""After this time without a line, one says how far the epoch is."""
log = logging.getLogger("spacenet")


@dataclass(frozen=True)
class RunStart:
    """What a run begins with."""

    config: RunConfig
    stream: Stream
    tasks_done: int
    """Tasks learned before, if the run resumes."""
    warnings: Sequence[str] = ()


class Callback:
    """Override the events of interest. Exceptions that a callback raises stop the run.

    Examples
    --------
    >>> import spacenet
    >>> class Print(spacenet.Callback):
    ...     def on_task_end(self, record):
    ...         print(f"task {len(record.matrix)}: {len(record.tasks[-1].epochs)} epochs")
    >>> result = spacenet.run("split-digits", epochs=2, tasks="0,1/2,3", callbacks=[Print()], progress=False)
    task 1: 2 epochs
    task 2: 2 epochs
    """

    def on_run_begin(self, start: RunStart) -> None: ...

    def on_batch_end(self, task: int, done: int, total: int) -> None:
        """`done` of the task's `total` batches are over."""

    def on_epoch_end(self, epoch: Epoch) -> None: ...

    def on_task_end(self, record: Record) -> None:
        """`record` holds everything measured so far; the task that was learned last is at its end."""

    def on_run_end(self, metrics: dict[str, Any]) -> None: ...

    def close(self) -> None:
        """Called when the run is over, however it ended."""


class LineLogger(Callback):
    """Writes a line for each event; epochs that follow each other too fast are skipped."""

    def __init__(self, write: Callable[[str], None] = log.info, seconds_between_epochs: float = LINE_SECONDS) -> None:
        self.write = write
        self._pause, self._last = seconds_between_epochs, 0.0
        self._silent_since = 0.0
        self._work: list[int] = []
        self._warned = 0
        self._began: tuple[float, float] | None = None

    def on_run_begin(self, start: RunStart) -> None:
        model, stream = start.config.model, start.stream
        sizes = enumerate(count_samples(stream)[0])  # the tasks' epochs may take very different times
        self._work = [model.training.epochs_of(task, samples) * samples for task, samples in sizes]
        resumed = f", resuming after {start.tasks_done} tasks" if start.tasks_done else ""
        self.write(f"{model.method} learns {stream.name} in {len(stream)} tasks, seed {model.seed}{resumed}")
        self._warn(start.warnings)

    def _warn(self, warnings: Sequence[str]) -> None:
        """Write the warnings that are new."""
        for warning in warnings[self._warned :]:
            self.write(f"warning: {warning}")
        self._warned = len(warnings)

    def on_batch_end(self, task: int, done: int, total: int) -> None:
        now = time.monotonic()
        self._silent_since = max(self._silent_since or now, self._last)
        if now - self._silent_since >= SILENCE_SECONDS:
            self._silent_since = now
            self.write(f"task {task + 1}  {done:,} of its {total:,} steps")

    def on_epoch_end(self, epoch: Epoch) -> None:
        now = time.monotonic()
        # Where a model learns one more task, no line about the task follows, so its last epoch is never skipped.
        last = not self._work and epoch.epoch + 1 == epoch.epochs
        if now - self._last < self._pause and not last:
            return
        self._last = now
        share = (epoch.epoch + 1) / epoch.epochs
        left = self._seconds_left(now, self._work_done(epoch.task, share)) if self._work else None
        line = epoch.describe(len(self._work))
        if left is not None:
            line += f"  about {f'{left:.0f} s' if left < 90 else f'{left / 60:.0f} min'} left"
        self.write(line)

    def _work_done(self, task: int, share: float) -> float:
        """Samples times epochs of all tasks that are over when this share of a task is done."""
        return sum(self._work[:task]) + share * self._work[task]

    def _seconds_left(self, now: float, done: float) -> float | None:
        """Counted from the first epoch reported; what comes before it happens only once."""
        if self._began is None:
            self._began = now, done
            return None
        began, before = self._began
        if done <= before:  # a method that goes through a task's epochs more than once
            return None
        return (now - began) / (done - before) * (sum(self._work) - done)

    def on_task_end(self, record: Record) -> None:
        task, mean = record.tasks[-1], mean_so_far(record.matrix[-1], len(record.matrix))
        self.write(
            f"task {task.index + 1}/{len(self._work)} learned ({', '.join(task.labels)}): accuracy "
            f"{task.accuracy:.1f} %, {'' if mean is None else f'all tasks so far {mean:.1f} %, '}"
            f"{task.seconds:.1f} s"
        )
        self._warn(record.warnings)

    def on_run_end(self, metrics: dict[str, Any]) -> None:
        if metrics["stopped"]:
            self.write(metrics["stopped"])
        elif metrics["tasks_learned"]:
            self.write(f"done: ACC {metrics['acc']:.2f}  BWT {metrics['bwt']:z.2f}  {metrics['seconds']:.1f} s")


class FileLogger(LineLogger):
    """Appends the lines to a file, each with the time of day."""

    def __init__(self, path: Path) -> None:
        super().__init__(self._append, 0.0)
        self.path = path

    def _append(self, line: str) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{datetime.now():%Y-%m-%d %H:%M:%S}  {line}\n")


class ProgressBar(LineLogger):
    """A live bar for the whole run, in a terminal or a notebook, and a line that stays for each task learned."""

    def __init__(self, console: "Console | None" = None) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        console = console or Console(stderr=True)
        super().__init__(lambda line: console.print(line, highlight=False))
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        self.progress = Progress(*columns, TextColumn("left"), console=console, transient=True)
        self._bar = self.progress.add_task("", total=None)
        self._shown = 0.0

    def on_run_begin(self, start: RunStart) -> None:
        super().on_run_begin(start)
        completed = sum(self._work[: start.tasks_done])
        self.progress.update(self._bar, total=sum(self._work), completed=completed, description="task")
        self.progress.start()

    def on_batch_end(self, task: int, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self._shown <= REFRESH_SECONDS:
            return
        self._shown = now
        if self._work:
            self.progress.update(self._bar, completed=self._work_done(task, done / total))
        else:  # a single task of a model that learns on
            self.progress.start()
            self.progress.update(self._bar, completed=done, total=total)

    def on_epoch_end(self, epoch: Epoch) -> None:
        self.progress.update(self._bar, description=epoch.describe(len(self._work)), refresh=True)

    def on_task_end(self, record: Record) -> None:
        super().on_task_end(record)
        self.progress.update(self._bar, completed=sum(self._work[: len(record.matrix)]))

    def on_run_end(self, metrics: dict[str, Any]) -> None: ...

    def close(self) -> None:
        self.progress.stop()


def default_callbacks(progress: bool = True) -> list[Callback]:
    """A live bar in a terminal or a notebook; elsewhere lines in the log `spacenet`."""
    if not progress:
        return []
    from rich.console import Console

    console = Console(stderr=True)
    return [ProgressBar(console) if console.is_terminal or console.is_jupyter else LineLogger()]
