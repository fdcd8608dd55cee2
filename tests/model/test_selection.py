"""The repeated allocation is that of the run, task by task; units that no task selected follow from it."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from spacenet.data.stream import Task
from spacenet.experiments.run import RunData
from spacenet.methods.shared.sparse import SparseMethod
from spacenet.model.inspection import inspect_model
from spacenet.model.selection import Allocation, count_never_selected, repeat_allocations
from spacenet.space.ledger import Connections
from tests.model.support import model as learned_model
from tests.report.conftest import learn

GROWING = {"net": {"hidden": [12, 13]}, "method": {"expand": "auto"}}


def learn_and_note(
    monkeypatch: pytest.MonkeyPatch, name: str, over: dict[str, Any]
) -> tuple[RunData, list[Allocation]]:
    """A run, and what its tasks were given."""
    seen: list[Allocation] = []
    allocate = SparseMethod.allocate

    def allocate_and_note(self: SparseMethod, task: Task) -> Allocation:
        seen.append(allocate(self, task))
        return seen[-1]

    with monkeypatch.context() as patch:
        patch.setattr(SparseMethod, "allocate", allocate_and_note)
        return learn(name, **over), seen


@pytest.mark.parametrize(
    ("method", "over"),
    [
        ("spacenet", {}),
        ("spacenet", {"method": {"unused_first": True, "connections": [0.05]}}),
        ("spacenet", {"method": {"first_selected": [12], "first_reserved": [6], "first_connections": [60, 60, 16]}}),
        ("spacenet", {"method": {"expand": "1:hidden1=7/3:hidden2=5"}}),
        ("spacenet", GROWING),
        ("static-sparse", {}),
        ("spacenet-rehearsal", {}),
    ],
)
def test_the_repeated_allocation_is_that_of_the_run(
    method: str, over: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, seen = learn_and_note(monkeypatch, method, over)
    if over is GROWING:
        assert run.metrics["units_added"] > 0
    assert run.model is not None
    again = list(repeat_allocations(run.model))
    assert len(seen) == len(again) == 3
    for (selection, connections), found in zip(seen, again, strict=True):
        for name, units in selection.items():
            assert torch.equal(found[0][name], units)
        for name, expected in connections.items():
            assert torch.equal(_positions(found[1][name]), _positions(expected))
            assert torch.equal(found[1][name].value.sort().values, expected.value.sort().values)
    counts = count_never_selected(run.model)
    for layer in run.model.method.blueprint.hidden:
        selected = torch.cat([selection[layer.name] for selection, _ in seen]).unique()
        assert counts is not None
        assert counts[layer.name] == run.model.method.ledger.size(layer.name) - len(selected)


def test_without_rewiring_units_that_are_selected_have_connections() -> None:
    run = learn("static-sparse")
    assert run.model is not None
    for layer in inspect_model(run.model, 0).layers:
        assert layer.never_selected == layer.unused


def test_connections_that_never_move_are_still_there() -> None:
    run = learn("static-sparse")
    assert run.model is not None
    for task, (_, found) in enumerate(repeat_allocations(run.model)):
        for name, held in run.model.method.ledger.connections.items():
            assert torch.equal(_positions(found[name]), _positions(held[held.owner == task]))


def test_the_model_is_left_alone() -> None:
    model = learned_model()
    before = {name: tensor.clone() for name, tensor in model.method.ledger.tensors().items()}
    assert count_never_selected(model) is not None
    for name, tensor in model.method.ledger.tensors().items():
        assert torch.equal(tensor, before[name])


@pytest.mark.parametrize("change", [{"selected": (9,)}, {"selected": (40,)}, {"connections": (0.02,)}])
def test_with_other_settings_than_the_tasks_had_it_is_unknown(change: dict[str, Any]) -> None:
    model = learned_model()
    settings: Any = replace(model.config.method_settings, **change)
    model.config = replace(model.config, method_settings=settings)
    if "connections" in change:  # does not change which units are selected
        assert count_never_selected(model) == count_never_selected(learned_model())
    else:
        assert count_never_selected(model) is None
        assert all(layer.never_selected is None for layer in inspect_model(model, 0).layers)


def _positions(connections: Connections) -> torch.Tensor:
    """In an order that does not depend on that of the ledger."""
    return (connections.target.long() * 10_000 + connections.source.long()).sort().values
