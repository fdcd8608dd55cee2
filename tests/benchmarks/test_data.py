"""The benchmark of reading: that it generates all data, reads it, and tells time and memory."""

import io
import subprocess
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.data import WIDE, Options, learn, measure, write_arrays
from tests.warm import run


def test_everything_is_read_and_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", run)
    console = Console(file=io.StringIO(), width=160)
    figures = measure(Options(images=30, rows=200), console)["reading"]
    assert [each["into"] for each in figures] == ["memory", "mapped file"] * 3
    assert all(0 < each["before"] <= each["peak"] <= each["peak_with_tasks"] for each in figures)
    assert all(each["seconds"] > 0 for each in figures)
    assert isinstance(console.file, io.StringIO)
    assert "CSV, 200 rows × 20" in console.file.getvalue()


def test_a_table_is_learned_as_one_task(tmp_path: Path) -> None:
    found = learn(write_arrays(tmp_path, 300))
    assert found["samples"] == 300 * WIDE * 4
    assert found["seconds"] > 0
