"""The allocation that is done once more is the one that was."""

from pathlib import Path
from typing import Any

import pytest
import torch

from spacenet.data.stream import Samples, Task
from spacenet.methods.shared.sparse import SparseMethod
from spacenet.report.plots.initial_allocation import laid_out
from spacenet.report.run_data import RunFacts
from spacenet.space.cut import Units
from spacenet.space.ledger import Connections
from tests.report.plots.space_support import run_facts

GROWING = {"net": {"hidden": [12, 13]}, "options": {"expand": "auto"}}


@pytest.mark.parametrize(
    ("method", "over"),
    [
        ("spacenet", {}),
        ("spacenet", {"options": {"unused_first": True, "connections": [0.05]}}),
        ("spacenet", {"options": {"expand": "2:hidden1=7/3:hidden2=5"}}),
        ("spacenet", GROWING),
        ("spacenet-rehearsal", {}),
    ],
)
def test_it_equals_what_a_live_method_begins_with(
    method: str, over: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[Units, dict[str, Connections]]] = []
    begin = SparseMethod.begin_task

    def begin_and_note(self: SparseMethod, task: Task, data: Samples) -> None:
        begin(self, task, data)
        assert self.workspace is not None
        seen.append((self.workspace.selection, self.workspace.connections(task.index)))

    monkeypatch.setattr(SparseMethod, "begin_task", begin_and_note)
    facts = run_facts(tmp_path, method, **over)
    assert len(seen) == 3
    if over is GROWING:
        assert facts.metrics["units_added"] > 0
    for task, (selection, connections) in enumerate(seen):
        found = laid_out(facts, task)
        assert found is not None
        for name, units in selection.items():
            assert torch.equal(found[0][name], units)
        for name, expected in connections.items():
            assert torch.equal(_sorted(found[1][name]), _sorted(expected))
            assert torch.equal(found[1][name].value.sort().values, expected.value.sort().values)


def test_connections_that_never_move_still_lie_there(static_run: RunFacts) -> None:
    assert static_run.model is not None
    for task in range(3):
        found = laid_out(static_run, task)
        assert found is not None
        for name, held in static_run.model.method.ledger.connections.items():
            assert torch.equal(_sorted(found[1][name]), _sorted(held[held.owner == task]))


def test_the_model_is_left_alone(spacenet_run: RunFacts) -> None:
    assert spacenet_run.model is not None
    before = {name: tensor.clone() for name, tensor in spacenet_run.model.method.ledger.tensors().items()}
    laid_out(spacenet_run, 1)
    for name, tensor in spacenet_run.model.method.ledger.tensors().items():
        assert torch.equal(tensor, before[name])


def _sorted(connections: Connections) -> torch.Tensor:
    """Positions, in an order that does not depend on that of the ledger."""
    return (connections.target.long() * 10_000 + connections.source.long()).sort().values
