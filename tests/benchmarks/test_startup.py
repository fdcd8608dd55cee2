"""The benchmark of start-up: that it starts every command and tells what it takes besides training."""

import io
import subprocess

import pytest
from rich.console import Console

from benchmarks.startup import LIMITS, TORCH, Options, measure
from tests.warm import run


def test_every_command_is_started_and_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", run)
    console = Console(file=io.StringIO(), width=120)
    seconds = measure(Options(repeats=1, stream="split-digits"), console)["seconds"]
    assert set(seconds) == {TORCH, *LIMITS, "training"}
    assert all(each[0] > 0 for each in seconds.values())
    assert isinstance(console.file, io.StringIO)
    assert "spacenet run split-digits, without training" in console.file.getvalue()
