import io
import itertools
import logging
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from spacenet.data.stream_views import count_samples
from spacenet.data.streams import build_stream
from spacenet.errors import SpaceFull
from spacenet.experiments.callbacks import (
    Callback,
    FileLogger,
    LineLogger,
    ProgressBar,
    RunStart,
    default_callbacks,
)
from spacenet.experiments.metrics import Record
from spacenet.experiments.run import Run
from spacenet.training.loop import Epoch
from tests.experiments.support import config


def test_lines_say_what_happens(tmp_path: Path) -> None:
    lines: list[str] = []
    Run(config(tmp_path), callbacks=[LineLogger(lines.append, 0.0)]).execute()
    assert lines[0] == "spacenet learns custom in 3 tasks, seed 0"
    assert lines[1].startswith("task 1/3  epoch 1/3  loss ")
    assert "left" not in lines[1]  # what is done only once, before the first epoch, would count for every one
    assert "left" in lines[2]
    assert len(lines) == 1 + 9 + 3 + 1
    assert lines[-1].startswith("done: ACC")


def test_nothing_forgotten_is_no_negative_zero() -> None:
    lines: list[str] = []
    LineLogger(lines.append).on_run_end({"stopped": None, "tasks_learned": 2, "acc": 99, "bwt": -0.001, "seconds": 1})
    assert lines == ["done: ACC 99.00  BWT 0.00  1.0 s"]


def test_hasty_epochs_are_passed_over(tmp_path: Path) -> None:
    lines: list[str] = []
    Run(config(tmp_path), callbacks=[LineLogger(lines.append, seconds_between_epochs=1000)]).execute()
    assert sum("epoch" in line for line in lines) <= 1
    assert sum("learned" in line for line in lines) == 3


def test_a_terminal_gets_a_bar_that_goes_away(tmp_path: Path) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    Run(config(tmp_path), callbacks=[ProgressBar(console)]).execute()
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    assert "task 3/3 learned (4, 5)" in shown
    assert "epoch 3/3" in shown
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")  # the cursor is back
    assert shown.endswith("\x1b[1A\x1b[2K")  # and the bar is erased


def test_the_bar_moves_on_without_epochs(tmp_path: Path) -> None:
    callback = ProgressBar(Console(file=io.StringIO(), force_terminal=True))
    Run(config(tmp_path, "gaussian"), callbacks=[callback]).execute()
    bar = callback.progress.tasks[0]
    samples = sum(count_samples(build_stream(config(tmp_path).stream))[0])
    assert bar.completed == bar.total == 3 * samples


@pytest.mark.parametrize(
    ("tasks", "first_epochs", "last", "left"),
    [
        ("0,1/2,3/4,5", 12, "task 1/3  epoch 12/12", "60 s"),  # after 12 of 12 + 3 + 3 epochs there are six left
        ("0,1,2,3/4", 3, "task 1/2  epoch 3/3", "8 s"),  # those of the second task have a quarter of the samples
    ],
    ids=["more epochs", "more samples"],
)
def test_the_time_left_knows_of_a_longer_first_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tasks: str, first_epochs: int, last: str, left: str
) -> None:
    """At ten seconds an epoch of the first task."""
    lines: list[str] = []
    settings = config(tmp_path)
    stream, model = replace(settings.stream, tasks=tasks), settings.model.replace(first_epochs=first_epochs)
    settings = replace(settings, stream=stream, model=model)
    callback = LineLogger(lines.append)
    callback.on_run_begin(RunStart(settings, build_stream(settings.stream), 0))
    clock = itertools.count(100, 10)
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    for epoch in range(first_epochs):
        callback.on_epoch_end(Epoch(0, epoch, first_epochs, 0.5, 90.0))
    assert lines[-1].startswith(last)
    assert lines[-1].endswith(f"about {left} left")


class Everything(Callback):
    """Writes down every event."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def on_run_begin(self, start: RunStart) -> None:
        self.events.append(f"begin {len(start.stream)} {start.tasks_done}")

    def on_batch_end(self, task: int, done: int, total: int) -> None:
        self.events.append(f"batch {task} {done}/{total}")

    def on_epoch_end(self, epoch: Epoch) -> None:
        self.events.append(f"epoch {epoch.task} {epoch.epoch}/{epoch.epochs}")

    def on_task_end(self, record: Record) -> None:
        self.events.append(f"task {len(record.matrix)} {len(record.tasks[-1].epochs)}")

    def on_run_end(self, metrics: dict[str, Any]) -> None:
        self.events.append(f"end {metrics['tasks_learned']}")

    def close(self) -> None:
        self.events.append("close")


def test_a_callback_is_called_at_every_event_in_order(tmp_path: Path) -> None:
    callback = Everything()
    Run(config(tmp_path, stream={"tasks": "0,1/2,3"}, training={"epochs": 2}), callbacks=[callback]).execute()
    tasks = [
        [
            *(f"batch {t} {done}/12" for done in range(1, 7)),
            f"epoch {t} 0/2",
            *(f"batch {t} {done}/12" for done in range(7, 13)),
            f"epoch {t} 1/2",
            f"task {t + 1} 2",
        ]
        for t in range(2)
    ]
    assert callback.events == ["begin 2 0", *tasks[0], *tasks[1], "end 2", "close"]


def test_a_resumed_run_says_where_it_goes_on(tmp_path: Path) -> None:
    class Stop(Callback):
        def on_task_end(self, record: Record) -> None:
            raise KeyboardInterrupt

    wanted, callback, lines = config(tmp_path), Everything(), list[str]()
    with pytest.raises(KeyboardInterrupt):
        Run(wanted, folder=tmp_path / "run", callbacks=[callback, Stop()]).execute()
    assert callback.events[-1] == "close"
    Run(wanted, folder=tmp_path / "run", callbacks=[callback, LineLogger(lines.append)]).execute()
    assert "begin 3 1" in callback.events
    assert "batch 0 1/18" not in callback.events[callback.events.index("begin 3 1") :]
    assert lines[0] == "spacenet learns custom in 3 tasks, seed 0, resuming after 1 tasks"


def test_warnings_are_said_first(tmp_path: Path) -> None:
    lines: list[str] = []
    wanted = config(tmp_path, net={"hidden": [30, 16]})
    with pytest.raises(SpaceFull):
        Run(wanted, callbacks=[LineLogger(lines.append)]).execute()
    assert lines[1].startswith("warning: the space holds 2 of the stream's 3 tasks")
    assert lines[-1].startswith("task 3 was not learned: hidden2 is full")


def test_a_log_file_has_the_time_of_day_before_each_line(tmp_path: Path) -> None:
    FileLogger(tmp_path / "run.log").write("something")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  something\n", (tmp_path / "run.log").read_text())


def test_without_a_terminal_there_are_lines_in_the_log(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    assert default_callbacks(progress=False) == []
    with caplog.at_level(logging.INFO, "spacenet"):
        Run(config(tmp_path), callbacks=default_callbacks()).execute()
    assert caplog.messages[0] == "spacenet learns custom in 3 tasks, seed 0"
    assert caplog.messages[-1].startswith("done: ACC")


def test_a_long_epoch_is_not_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    lines, now = list[str](), [100.0]
    monkeypatch.setattr("spacenet.experiments.callbacks.time.monotonic", lambda: now[0])
    callback = LineLogger(lines.append)
    for done in range(1, 31):
        now[0] += 1
        callback.on_batch_end(0, done, 1200)
    assert lines == ["task 1  11 of its 1,200 steps", "task 1  21 of its 1,200 steps"]
