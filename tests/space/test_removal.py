import copy
from dataclasses import replace

import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from spacenet.space.ledger import FREE, Ledger
from spacenet.space.pack import pack, packed_units
from spacenet.space.removal import place_outputs, release, remove_outputs
from tests.space.support import Case, cases, finish, learned, open_task, train

SOME = st.sets(st.integers(0, 5), min_size=1, max_size=5)


def remaining(ledger: Ledger, outputs: set[int]) -> list[int]:
    return [number for number in range(ledger.size("output")) if number not in outputs]


def remove(ledger: Ledger, outputs: set[int], case: Case) -> Ledger:
    """The ledger without these outputs and the space of tasks, of two outputs each, that have none left."""
    after = copy.deepcopy(ledger)
    remove_outputs(after, torch.tensor(sorted(outputs)))
    for task in range(case.tasks):
        if {2 * task, 2 * task + 1} <= outputs:
            release(after, task, {"output": torch.arange(after.size("output"))}, case.rng(task, 2))
    return after


@given(cases, SOME)
def test_at_their_old_places_outputs_are_computed_as_before(case: Case, outputs: set[int]) -> None:
    """With the units that were packed, the matrices have their old sizes, so that products are rounded alike."""
    ledger = learned(replace(case, tasks=3))
    after, stay = remove(ledger, outputs, replace(case, tasks=3)), remaining(ledger, outputs)
    places = torch.full((ledger.size("output"),), -1)
    places[stay] = torch.arange(len(stay))
    x, before = torch.randn(16, case.inputs, generator=case.rng(5)), pack(ledger)
    placed = pack(
        place_outputs(after, places), more={name: each for name, each in before.units.items() if name != "output"}
    )
    assert {name: each.shape for name, each in placed.params.items()} == {
        name: each.shape for name, each in before.params.items()
    }
    assert torch.equal(placed(x)[:, stay], before(x)[:, stay])


@given(cases, SOME)
def test_other_outputs_keep_their_bits(case: Case, outputs: set[int]) -> None:
    ledger = learned(replace(case, tasks=3))
    after, stay = remove(ledger, outputs, replace(case, tasks=3)), remaining(ledger, outputs)
    before = pack(ledger, ends={"output": torch.tensor(stay)})
    x = torch.randn(16, case.inputs, generator=case.rng(5))
    assert after.size("output") == len(stay)
    assert torch.equal(pack(after)(x), before(x))


@given(cases, st.integers(0, 2))
def test_what_leads_to_no_other_output_is_given_back(case: Case, task: int) -> None:
    case = replace(case, tasks=3)
    ledger = learned(case)
    after = remove(ledger, {2 * task, 2 * task + 1}, case)
    needed = packed_units(after)
    for link in after.blueprint.links:
        held = after.connections[link.name]
        own = held[held.owner == task]
        assert bool(torch.isin(own.target, needed[link.target]).all())
        others = ledger.connections[link.name]
        assert int((held.owner != task).sum()) == int((others.owner != task).sum())
    for layer in after.blueprint.hidden:
        state, was = after.state[layer.name], ledger.state[layer.name]
        assert torch.equal(state[was != task], was[was != task])
        assert bool(torch.isin((state == task).nonzero().flatten(), needed[layer.name]).all())
        new = ~after.used(layer.name) & ledger.used(layer.name) & (state == FREE)
        assert bool((after.units[f"{layer.name}.bias"][new] == 0).all())


@given(cases)
def test_the_space_of_the_last_task_can_be_learned_in_again(case: Case) -> None:
    case = replace(case, tasks=2)
    after = remove(learned(case), {2, 3}, case)
    kept = pack(after, ends={"output": torch.arange(2)}).params
    after.grow("output", 2)  # as many as the next task of these tests names
    workspace = open_task(case, after, 2)
    train(case, workspace, 2)
    finish(case, workspace, 2)
    assert pack(after).params["hidden1.bias"].isfinite().all()
    assert kept.keys() == pack(after).params.keys()


@given(cases, st.integers(0, 1))
def test_units_stand_by_where_the_network_of_a_task_must_stay(case: Case, output: int) -> None:
    ledger = learned(replace(case, tasks=2))
    after = copy.deepcopy(ledger)
    remove_outputs(after, torch.tensor([output]), keep_sources_of=[range(2)])
    before, now = packed_units(ledger, {"output": torch.arange(2)}), packed_units(after, {"output": torch.arange(1)})
    for layer in ledger.blueprint.hidden:
        assert torch.equal(before[layer.name], now[layer.name])
    (link,) = after.blueprint.classifiers
    gone = ledger.connections[link.name]
    removed = gone[gone.target == output].value
    assume(len(removed))
    assert not bool(torch.isin(removed[removed != 0], after.connections[link.name].value).any())
    x = torch.randn(16, case.inputs, generator=case.rng(5))
    one = pack(ledger, ends={"output": torch.tensor([1 - output])})(x)
    torch.testing.assert_close(pack(after, ends={"output": torch.arange(1)})(x), one, atol=1e-5, rtol=1e-4)
