"""The benchmarks at tiny sizes: that they measure what they say, not how fast anything is."""

import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from benchmarks.compare import COMPACT, DENSE, LITERAL, WHOLE, compare_runs
from benchmarks.phases import PHASES
from benchmarks.speed import Options, measure
from benchmarks.width import memory_of
from benchmarks.workload import with_model, workload
from spacenet.registry import METHODS


def test_all_parts_are_measured_and_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.width._in_new_processes", memory_of)  # test_prediction.py starts some
    console = Console(file=io.StringIO(), width=120)
    figures = measure(Options(tiny=True, runs=1, seconds_per_cell=0.02), console)
    json.dumps(figures)
    assert isinstance(console.file, io.StringIO)
    assert "random numbers" in console.file.getvalue()
    assert [set(cell["steps"]) for cell in figures["steps"]] == [{COMPACT, WHOLE, LITERAL, DENSE}] * 4
    assert all(row["memory"]["ledger"] > 0 for row in figures["width"])
    # Every phase names a function that a run really calls.
    assert {phase for phase in PHASES if not figures["profile"]["phases"][phase]["calls"]} == set()


def test_all_forms_learn_the_same() -> None:
    with workload(1, None, tiny=True) as work:
        training = replace(work.config.model.training, learning_rate=0.1, epochs=6)
        forms = compare_runs(replace(work, config=with_model(work.config, training=training)), 1)["forms"]
    assert forms[COMPACT]["matrix"] == forms[WHOLE]["matrix"] == forms[LITERAL]["matrix"]
    assert len({value for row in forms[COMPACT]["matrix"] for value in row}) > 2, "nothing was learned to compare"
    assert "masked-dense" not in METHODS
