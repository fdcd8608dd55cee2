from dataclasses import replace
from pathlib import Path

import numpy as np

from spacenet.report.plots.areas import half_of
from spacenet.report.plots.compaction import compaction_data, compaction_picture
from spacenet.report.plots.initial_allocation import laid_out
from spacenet.report.run_data import RunFacts
from tests.report.plots.space_support import run_facts, words_in


def test_both_panels_show_the_tasks_connections(spacenet_run: RunFacts) -> None:
    for task in (1, 2):
        data, found = compaction_data(spacenet_run, task), laid_out(spacenet_run, task - 1)
        assert data is not None
        assert found is not None
        assert spacenet_run.model is not None
        assert (data.source, data.target) == ("hidden1", "hidden2")
        selection, new = found
        held = spacenet_run.model.method.ledger.connections["hidden1-hidden2"]
        for block, expected in ((data.before, new["hidden1-hidden2"]), (data.after, held[held.owner == task - 1])):
            rows, columns = block.nonzero()
            pairs = zip(selection["hidden2"][rows].tolist(), selection["hidden1"][columns].tolist(), strict=True)
            assert set(pairs) == set(zip(expected.target.tolist(), expected.source.tolist(), strict=True))
            assert block.sum() == len(expected) == 40


def test_the_title_says_how_few_units_hold_half(spacenet_run: RunFacts) -> None:
    data = compaction_data(spacenet_run)
    assert data is not None
    data = replace(data, before=np.eye(10, dtype=bool), after=np.arange(10)[:, None].repeat(10, 1) < 4)
    plot = compaction_picture(data)
    assert plot.title == "After training, half of task 1's connections enter 2 of the 10 units; before it was 5"
    assert "half enter" in words_in(plot)
    assert "half leave 5 of 10" in words_in(plot)
    assert half_of(data.after.sum(1)) == 2


def test_what_does_not_move_is_not_drawn(static_run: RunFacts, spacenet_run: RunFacts) -> None:
    assert compaction_data(static_run) is None
    assert compaction_data(replace(spacenet_run, model=None)) is None


def test_with_one_hidden_layer_the_inputs_are_shown(tmp_path: Path) -> None:
    data = compaction_data(run_facts(tmp_path, net={"hidden": [30]}, options={"connections": [40, 16]}))
    assert data is not None
    assert (data.source, data.target, data.after.shape) == ("input", "hidden1", (10, 16))
