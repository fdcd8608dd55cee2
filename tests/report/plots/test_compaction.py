"""Connections before and after training; those before are laid out again, and equal those that the task began with."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from spacenet.data.stream import Task
from spacenet.experiments.run import RunData
from spacenet.methods.shared.sparse import SparseMethod
from spacenet.report.plots import compaction
from spacenet.report.plots.compaction import Blocks, compaction_plot, first_blocks, initial_allocation
from spacenet.report.plots.drawing import units_with_half
from spacenet.space.ledger import Connections
from spacenet.space.pack import Units
from tests.report.conftest import learn
from tests.report.made_up import complete_run, words_in

GROWING = {"net": {"hidden": [12, 13]}, "method": {"expand": "auto"}}


def test_both_panels_show_the_tasks_connections(tmp_path: Path) -> None:
    run = complete_run(tmp_path)
    assert run.model is not None
    data, (selection, new) = first_blocks(run.model), initial_allocation(run.model)
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


@pytest.mark.parametrize(
    ("method", "over"),
    [
        ("spacenet", {}),
        ("spacenet", {"method": {"unused_first": True, "connections": [0.05]}}),
        ("spacenet", {"method": {"expand": "1:hidden1=7/3:hidden2=5"}}),
        ("spacenet", GROWING),
        ("spacenet-rehearsal", {}),
    ],
)
def test_the_repeated_allocation_is_that_of_the_run(
    method: str, over: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[Units, dict[str, Connections]]] = []
    allocate = SparseMethod.allocate

    def allocate_and_note(self: SparseMethod, task: Task) -> tuple[Units, dict[str, Connections]]:
        seen.append(allocate(self, task))
        return seen[-1]

    with monkeypatch.context() as patch:
        patch.setattr(SparseMethod, "allocate", allocate_and_note)
        run = learn(method, **over)
    assert len(seen) == 3
    if over is GROWING:
        assert run.metrics["units_added"] > 0
    assert run.model is not None
    (selection, connections), found = seen[0], initial_allocation(run.model)
    for name, units in selection.items():
        assert torch.equal(found[0][name], units)
    for name, expected in connections.items():
        assert torch.equal(_positions(found[1][name]), _positions(expected))
        assert torch.equal(found[1][name].value.sort().values, expected.value.sort().values)


def test_connections_that_never_move_are_still_there(learned_static_run: RunData) -> None:
    assert learned_static_run.model is not None
    _, found = initial_allocation(learned_static_run.model)
    for name, held in learned_static_run.model.method.ledger.connections.items():
        assert torch.equal(_positions(found[name]), _positions(held[held.owner == 0]))


def test_the_model_is_left_alone(learned_run: RunData) -> None:
    assert learned_run.model is not None
    before = {name: tensor.clone() for name, tensor in learned_run.model.method.ledger.tensors().items()}
    initial_allocation(learned_run.model)
    for name, tensor in learned_run.model.method.ledger.tensors().items():
        assert torch.equal(tensor, before[name])


def _positions(connections: Connections) -> torch.Tensor:
    """In an order that does not depend on that of the ledger."""
    return (connections.target.long() * 10_000 + connections.source.long()).sort().values
