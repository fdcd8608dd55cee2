import io
import itertools
import time
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from spacenet.data.streams import build_stream
from spacenet.experiments.callbacks import LineLogger, LogsView, ProgressBar
from spacenet.experiments.run import Run, create_folder
from spacenet.training.loop import Epoch
from tests.experiments.support import config


def test_lines_say_what_happens(tmp_path: Path) -> None:
    lines: list[str] = []
    create_folder(config(tmp_path), tmp_path / "run")
    Run(tmp_path / "run", [LineLogger(lines.append)]).execute()
    assert lines[0] == "spacenet learns npz in 3 tasks, seed 0"
    assert lines[1].startswith("task 1/3  epoch 1/3  loss ")
    assert "left" not in lines[1]  # what is done only once, before the first epoch, would count for every one
    assert "left" in lines[2]
    assert len(lines) == 1 + 9 + 3 + 1
    assert lines[-1].startswith("done: ACC")


def test_hasty_epochs_are_passed_over(tmp_path: Path) -> None:
    lines: list[str] = []
    create_folder(config(tmp_path), tmp_path / "run")
    Run(tmp_path / "run", [LineLogger(lines.append, seconds_between_epochs=1000)]).execute()
    assert sum("epoch" in line for line in lines) <= 1
    assert sum("learned" in line for line in lines) == 3


def test_a_terminal_gets_a_bar_that_goes_away(tmp_path: Path) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    create_folder(config(tmp_path), tmp_path / "run")
    Run(tmp_path / "run", [ProgressBar(console)]).execute()
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    assert "task 3/3 learned (4, 5)" in shown
    assert "epoch 3/3" in shown
    assert shown.rstrip().endswith("\x1b[?25h")  # the cursor is back


def test_the_bar_moves_on_without_epochs(tmp_path: Path) -> None:
    callback = ProgressBar(Console(file=io.StringIO(), force_terminal=True))
    create_folder(config(tmp_path, "gaussian"), tmp_path / "run")
    Run(tmp_path / "run", [callback]).execute()
    assert callback._progress.tasks[0].completed == callback._progress.tasks[0].total == 9


def test_the_time_left_knows_of_a_longer_first_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten seconds an epoch: after 12 of 12 + 3 + 3 there are six left, not twice as many as are done."""
    lines: list[str] = []
    settings = config(tmp_path)
    settings = replace(settings, training=replace(settings.training, first_epochs=12))
    callback = LineLogger(lines.append)
    callback.begin(settings, build_stream(settings.stream, settings.data), 0, [])
    clock = itertools.count(100, 10)
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    for epoch in range(12):
        callback.epoch(Epoch(0, epoch, 12, 0.5, 90.0))
    assert lines[-1].startswith("task 1/3  epoch 12/12")
    assert lines[-1].endswith("about 60 s left")


@pytest.mark.parametrize("done", [0, 1])
def test_the_view_of_several_runs_reads_their_logs(tmp_path: Path, done: int) -> None:
    logs = [tmp_path / f"seed-{n}" / "run.log" for n in range(3)]
    for log, line in zip(logs, ["task 2/5  epoch 1/4", "done: ACC 75.00"], strict=False):
        log.parent.mkdir()
        log.write_text(f"2026-01-01 10:00:00  first\n2026-01-01 10:00:01  {line}\n")
    view = LogsView({log.parent.name: log for log in logs})
    view.done = done
    assert view.__rich__().plain == f"{done} of 3 runs done\n  seed-0  task 2/5  epoch 1/4"
