"""Connections before and after training."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from spacenet.experiments.run import RunData
from spacenet.model.selection import repeat_allocations
from spacenet.report.plots import compaction
from spacenet.report.plots.compaction import Blocks, compaction_plot, first_blocks
from spacenet.report.plots.drawing import units_with_half
from tests.report.conftest import learn
from tests.report.made_up import complete_run, words_in


def test_both_panels_show_the_tasks_connections(tmp_path: Path) -> None:
    run = complete_run(tmp_path)
    assert run.model is not None
    data, (selection, new) = first_blocks(run.model), next(repeat_allocations(run.model))
    assert (data.source, data.target) == ("hidden1", "hidden2")
    held = run.model.method.ledger.connections["hidden1-hidden2"]
    for block, expected in ((data.before, new["hidden1-hidden2"]), (data.after, held[held.owner == 0])):
        rows, columns = block.nonzero()
        pairs = zip(selection["hidden2"][rows].tolist(), selection["hidden1"][columns].tolist(), strict=True)
        assert set(pairs) == set(zip(expected.target.tolist(), expected.source.tolist(), strict=True))
        assert block.sum() == len(expected) == 40
    assert compaction_plot(replace(run, model=None)) is None


def test_the_title_says_how_few_units_hold_half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    after = np.arange(10)[:, None].repeat(10, 1) < 4
    data = Blocks("hidden1", "hidden2", before=np.eye(10, dtype=bool), after=after)
    monkeypatch.setattr(compaction, "first_blocks", lambda model: data)
    plot = compaction_plot(complete_run(tmp_path))
    assert plot is not None
    assert plot.title == "After training, half of task 1's connections enter 2 of 10 units (5 before)"
    assert "half enter" in words_in(plot)
    assert "half leave 5 of 10" in words_in(plot)
    assert units_with_half(data.after.sum(1)) == 2


def test_without_rewiring_there_is_no_plot(learned_static_run: RunData) -> None:
    assert compaction_plot(learned_static_run) is None


def test_with_one_hidden_layer_the_inputs_are_shown() -> None:
    run = learn(net={"hidden": [30]}, method={"connections": [40, 16]})
    assert run.model is not None
    data = first_blocks(run.model)
    assert (data.source, data.target, data.after.shape) == ("input", "hidden1", (10, 16))
