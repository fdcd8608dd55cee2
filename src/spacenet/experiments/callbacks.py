"""Watching a run: a live line in a terminal, plain lines elsewhere, a log in the run's folder."""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.text import Text

from spacenet.config.run import RunConfig
from spacenet.data.stream import Stream
from spacenet.experiments.record import Record
from spacenet.training.loop import Epoch

REFRESH_SECONDS = 0.1
TIME_OF_DAY = len("2000-12-31 23:59:59")


def print_line(line: str) -> None:
    """A line of progress; results alone go to the standard output."""
    print(line, file=sys.stderr, flush=True)


class Callback:
    """Is told what happens in a run. The base class looks away."""

    def begin(self, config: RunConfig, stream: Stream, tasks_done: int, warnings: Sequence[str]) -> None: ...

    def batch(self, task: int, done: int, total: int) -> None: ...

    def epoch(self, epoch: Epoch) -> None: ...

    def task(self, record: Record) -> None: ...

    def end(self, metrics: dict[str, Any]) -> None: ...

    def close(self) -> None:
        """Called when the run is over, however it ended."""


class LineLogger(Callback):
    """Writes a line for each thing that happens; epochs that follow each other too fast are passed over."""

    def __init__(self, write: Callable[[str], None], seconds_between_epochs: float = 0.0) -> None:
        self.write = write
        self._pause, self._last = seconds_between_epochs, 0.0
        self._epochs: list[int] = []
        self._began: tuple[float, float] | None = None

    @property
    def tasks(self) -> int:
        return len(self._epochs)

    def begin(self, config: RunConfig, stream: Stream, tasks_done: int, warnings: Sequence[str]) -> None:
        self._epochs = [config.training.epochs_of(task) for task in range(len(stream))]
        going_on = f", going on after {tasks_done} tasks" if tasks_done else ""
        self.write(f"{config.method} learns {stream.name} in {len(stream)} tasks, seed {config.seed}{going_on}")
        for warning in warnings:
            self.write(f"warning: {warning}")

    def epoch(self, epoch: Epoch) -> None:
        now = time.monotonic()
        if now - self._last < self._pause:
            return
        self._last = now
        left = self._seconds_left(now, self._epochs_done(epoch.task, (epoch.epoch + 1) / epoch.epochs))
        self.write(
            f"task {epoch.task + 1}/{self.tasks}  epoch {epoch.epoch + 1}/{epoch.epochs}  loss {epoch.loss:.4f}  "
            f"training accuracy {epoch.accuracy:.1f} %" + (f"  about {_time(left)} left" if left is not None else "")
        )

    def _epochs_done(self, task: int, share: float) -> float:
        """Of all tasks, when so much of a task is done."""
        return sum(self._epochs[:task]) + share * self._epochs[task]

    def _seconds_left(self, now: float, done: float) -> float | None:
        """From the first epoch that was told of; what comes before it takes time but once."""
        if self._began is None:
            self._began = now, done
            return None
        began, before = self._began
        if done <= before:  # a method that goes through a task's epochs more than once
            return None
        return (now - began) / (done - before) * (sum(self._epochs) - done)

    def task(self, record: Record) -> None:
        self.write(task_line(record, self.tasks))

    def end(self, metrics: dict[str, Any]) -> None:
        if metrics["stopped"]:
            self.write(metrics["stopped"])
        elif metrics["tasks_learned"]:
            self.write(f"done: ACC {metrics['acc']:.2f}  BWT {metrics['bwt']:.2f}  {metrics['seconds']:.1f} s")


class FileLogger(LineLogger):
    """Keeps the lines in a file, with the time of day."""

    def __init__(self, path: Path) -> None:
        super().__init__(self._append)
        self.path = path

    def _append(self, line: str) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{datetime.now():%Y-%m-%d %H:%M:%S}  {line}\n")


class ProgressBar(LineLogger):
    """A live bar for the whole run, and a line that stays for each task learned."""

    def __init__(self, console: Console) -> None:
        super().__init__(lambda line: console.print(line, highlight=False))
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(),
            TextColumn("left"),
            console=console,
        )
        self._bar = self._progress.add_task("", total=None)
        self._shown = 0.0

    def begin(self, config: RunConfig, stream: Stream, tasks_done: int, warnings: Sequence[str]) -> None:
        super().begin(config, stream, tasks_done, warnings)
        completed = sum(self._epochs[:tasks_done])
        self._progress.update(self._bar, total=sum(self._epochs), completed=completed, description="task")
        self._progress.start()

    def batch(self, task: int, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self._shown > REFRESH_SECONDS:
            self._shown = now
            self._progress.update(self._bar, completed=self._epochs_done(task, done / total))

    def epoch(self, epoch: Epoch) -> None:
        text = f"task {epoch.task + 1}/{self.tasks}  epoch {epoch.epoch + 1}/{epoch.epochs}  "
        text += f"loss {epoch.loss:.3f}  accuracy {epoch.accuracy:.1f} %"
        self._progress.update(self._bar, description=text, refresh=True)

    def task(self, record: Record) -> None:
        super().task(record)
        self._progress.update(self._bar, completed=sum(self._epochs[: len(record.matrix)]))

    def end(self, metrics: dict[str, Any]) -> None: ...

    def close(self) -> None:
        self._progress.update(self._bar, visible=False)
        self._progress.stop()


class LogsView:
    """Where several runs in other processes stand, read from the last lines of their logs; for `rich.live.Live`."""

    def __init__(self, logs: Mapping[str, Path]) -> None:
        self.logs, self.done = logs, 0

    def __rich__(self) -> Text:
        lines = [f"{self.done} of {len(self.logs)} runs done"]
        for label, log in self.logs.items():
            last = log.read_text(encoding="utf-8").splitlines()[-1:] if log.is_file() else []
            lines += [f"  {label}{line[TIME_OF_DAY:]}" for line in last if "done: " not in line]
        return Text("\n".join(lines), overflow="ellipsis", no_wrap=True)


def task_line(record: Record, tasks: int) -> str:
    """One line about the task learned last."""
    task, row = record.tasks[-1], record.matrix[-1]
    so_far = sum(row[: len(record.matrix)]) / len(record.matrix)
    return (
        f"task {task.index + 1}/{tasks} learned ({', '.join(task.labels)}): "
        f"accuracy {task.accuracy:.1f} %, all tasks so far {so_far:.1f} %, {task.seconds:.1f} s"
    )


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
