from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spacenet.errors import SettingsError, SpaceFull
from spacenet.nets.mlp import build_mlp
from spacenet.space.allocation import allocate, check, select, tasks_that_fit
from spacenet.space.budget import ResolvedBudget
from spacenet.space.ledger import FREE, Ledger
from tests.space.support import Case, allocate_or_reject, cases, learned


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@given(cases)
def test_selected_units_are_free_and_as_many_as_asked_for(case: Case) -> None:
    ledger = learned(case)
    selection = select(ledger, case.budget(), torch.tensor([90, 91]), rng())
    assert selection["input"].tolist() == list(range(case.inputs))
    assert selection["output"].tolist() == [90, 91]
    for layer in ledger.blueprint.hidden:
        chosen = selection[layer.name]
        assert len(chosen.unique()) == case.selected
        assert bool((ledger.state[layer.name][chosen] == FREE).all())


@given(cases)
def test_units_that_fewer_connections_enter_can_come_first(case: Case) -> None:
    ledger = learned(case)
    selection = select(ledger, case.budget(), torch.tensor([90, 91]), rng(), unused_first=True)
    for layer in ledger.blueprint.hidden:
        chosen, ingoing = selection[layer.name], ledger.ingoing(layer.name)
        left = sorted(set(ledger.free(layer.name).tolist()) - set(chosen.tolist()))
        assert len(chosen.unique()) == case.selected
        assert not left or int(ingoing[chosen].max()) <= int(ingoing[left].min())


@given(cases, st.integers(0, 100))
def test_connections_lie_between_selected_units_at_open_positions(case: Case, seed: int) -> None:
    ledger = learned(case)
    selection = select(ledger, case.budget(), torch.tensor([2 * case.tasks]), rng(seed))
    new = allocate_or_reject(case, ledger, selection, case.tasks, rng(seed))
    for link in ledger.blueprint.links:
        made, owned = new[link.name], ledger.connections[link.name]
        pairs = set(zip(made.source.tolist(), made.target.tolist(), strict=True))
        assert len(pairs) == len(made) == case.budget().connections[link.name]
        assert not pairs & set(zip(owned.source.tolist(), owned.target.tolist(), strict=True))
        assert set(made.source.tolist()) <= set(selection[link.source].tolist())
        assert set(made.target.tolist()) <= set(selection[link.target].tolist())


@given(st.integers(0, 200), st.integers(4, 10))
def test_every_selected_unit_gets_an_ingoing_connection_if_there_are_enough(seed: int, count: int) -> None:
    ledger = Ledger(build_mlp((50,), (8,)))
    budget = ResolvedBudget({"hidden1": 4}, {"hidden1": 1}, {"input-hidden1": count, "hidden1-output": 2})
    selection = select(ledger, budget, torch.tensor([0, 1]), rng(seed))
    new = allocate(ledger, budget, selection, 0, rng(seed))["input-hidden1"]
    assert set(new.target.tolist()) == set(selection["hidden1"].tolist())


def test_values_are_glorot_uniform_for_the_dense_shape() -> None:
    ledger = Ledger(build_mlp((100,), (500,)))
    budget = ResolvedBudget({"hidden1": 100}, {"hidden1": 1}, {"input-hidden1": 5000, "hidden1-output": 2})
    selection = select(ledger, budget, torch.tensor([0, 1]), rng())
    value = allocate(ledger, budget, selection, 0, rng())["input-hidden1"].value
    assert 0.099 < float(value.max()) < 0.1 < 0.2  # sqrt(6 / (100 + 500)) = 0.1
    assert -0.1 < float(value.min()) < -0.099


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"selected": {"hidden1": 13, "hidden2": 4}}, "13 units of hidden1 cannot be selected, it has 12"),
        ({"selected": {"hidden1": 0, "hidden2": 4}}, "0 units of hidden1 cannot be selected"),
        ({"reserved": {"hidden1": 2, "hidden2": 5}}, "5 units of hidden2 cannot be reserved of 4 selected"),
        ({"connections": {"input-hidden1": 25, "hidden1-hidden2": 8, "hidden2-output": 4}}, "25 do not fit"),
        ({"connections": {"input-hidden1": 6, "hidden1-hidden2": 4, "hidden2-output": 0}}, "0 do not fit"),
    ],
)
def test_budgets_that_can_never_work_name_the_setting(change: dict[str, dict[str, int]], words: str) -> None:
    case = Case(tasks=0)
    check(learned(case), case.budget(), 2)
    with pytest.raises(SettingsError, match=words) as info:
        check(learned(case), replace(case.budget(), **change), 2)
    assert info.value.setting in change


def test_a_layer_without_free_units_is_named() -> None:
    ledger = learned(Case(tasks=0))
    ledger.reserve("hidden2", torch.arange(8), task=0)
    with pytest.raises(
        SpaceFull, match=r"hidden2 is full: the next task needs 4 free units, 3 are left \(8 of 11"
    ) as info:
        select(ledger, Case().budget(), torch.tensor([0, 1]), rng())
    assert info.value.layer == "hidden2"
    assert "--expand auto makes room" in info.value.for_cli()
    assert "expand='auto' makes room" in str(info.value)


def test_a_layer_without_open_positions_is_named() -> None:
    case = Case(hidden=(4,), tasks=0, reserved=0)
    ledger = learned(case)
    selection = select(ledger, case.budget(), torch.tensor([0, 1]), rng())
    for task in range(2):  # half of all positions each
        for link in ledger.blueprint.links[:1]:
            ledger.add(link, allocate(ledger, case.budget(), selection, task, rng(task))[link.name])
    with pytest.raises(SpaceFull, match="hidden1 is full: 12 connections from input to hidden1 are needed") as info:
        allocate(ledger, case.budget(), selection, 2, rng())
    assert info.value.layer == "hidden1"
    assert "--expand auto makes room" in info.value.for_cli()
    assert "expand='auto' makes room" in str(info.value)


def test_how_many_tasks_fit_is_what_selection_allows() -> None:
    case = Case(hidden=(12, 11), selected=4, reserved=2, tasks=0)
    ledger = learned(case)
    assert tasks_that_fit(ledger, case.budget()) == 4  # hidden2: 11, 9, 7, 5 free, then 3 < 4
    count = 0
    while True:
        try:
            selection = select(ledger, case.budget(), torch.tensor([0, 1]), rng())
        except SpaceFull:
            break
        for name in ("hidden1", "hidden2"):
            ledger.reserve(name, selection[name][:2], count)
        count += 1
    assert count == 4
    assert tasks_that_fit(ledger, case.budget()) == 0
    assert tasks_that_fit(ledger, replace(case.budget(), reserved={"hidden1": 0, "hidden2": 0})) is None


def test_more_positions_than_memory_can_hold_are_an_error() -> None:
    ledger = Ledger(build_mlp((2,), (60_000, 60_000)))
    counts = {"input-hidden1": 4, "hidden1-hidden2": 4, "hidden2-output": 2}
    budget = ResolvedBudget(dict.fromkeys(("hidden1", "hidden2"), 60_000), {"hidden1": 1, "hidden2": 1}, counts)
    selection = select(ledger, budget, torch.tensor([0, 1]), rng())
    with pytest.raises(SettingsError, match="60,000 units of hidden1 and 60,000 of hidden2 are too many"):
        allocate(ledger, budget, selection, 0, rng())
