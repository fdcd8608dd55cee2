import pytest
import torch
from hypothesis import given

from spacenet.nets.mlp import build_mlp
from spacenet.space.ledger import FREE, Connections, Ledger
from spacenet.space.pack import pack
from tests.space.support import Case, cases, learned


def connections(*pairs: tuple[int, int], owner: int = 0) -> Connections:
    source, target = torch.tensor(pairs, dtype=torch.int32).T
    return Connections(source, target, torch.full((len(pairs),), owner, dtype=torch.int16), torch.ones(len(pairs)))


@given(cases)
def test_a_connection_has_one_owner(case: Case) -> None:
    ledger = learned(case)
    for link in ledger.blueprint.links:
        held = ledger.connections[link.name]
        pairs = list(zip(held.source.tolist(), held.target.tolist(), strict=True))
        assert len(set(pairs)) == len(pairs) == case.tasks * case.budget().connections[link.name]


@given(cases)
def test_a_reserved_unit_never_gains_an_ingoing_connection(case: Case) -> None:
    ledger = learned(case)
    for link in ledger.blueprint.links:
        held = ledger.connections[link.name]
        reserved_by = ledger.state[link.target][held.target.long()]
        assert bool(((reserved_by == FREE) | (held.owner <= reserved_by)).all())
    for layer in ledger.blueprint.hidden:
        for task in range(case.tasks):
            assert int((ledger.state[layer.name] == task).sum()) == case.reserved


def test_a_second_owner_is_refused() -> None:
    ledger = Ledger(build_mlp((3,), (4,)))
    link = ledger.blueprint.links[0]
    ledger.add(link, connections((0, 1), (2, 3)))
    with pytest.raises(ValueError, match="one owner"):
        ledger.add(link, connections((2, 3), owner=1))
    with pytest.raises(ValueError, match="one owner"):
        ledger.add(link, connections((1, 1), (1, 1), owner=1))


def test_a_connection_into_a_reserved_unit_is_refused() -> None:
    ledger = Ledger(build_mlp((3,), (4,)))
    link = ledger.blueprint.links[0]
    ledger.reserve("hidden1", torch.tensor([2]), task=0)
    ledger.add(link, connections((0, 1)))
    with pytest.raises(ValueError, match="reserved"):
        ledger.add(link, connections((0, 2)))
    with pytest.raises(ValueError, match="free"):
        ledger.reserve("hidden1", torch.tensor([2]), task=1)


@given(cases)
def test_growing_changes_no_output_by_a_bit(case: Case) -> None:
    ledger = learned(case)
    x = torch.randn(5, case.inputs, generator=case.rng(7))
    before = pack(ledger)(x)
    for layer in ledger.blueprint.hidden:
        assert ledger.grow(layer.name, 3).tolist() == list(range(layer.size, layer.size + 3))
    assert torch.equal(pack(ledger)(x), before)


@given(cases)
def test_it_comes_back_from_its_tensors(case: Case) -> None:
    ledger = learned(case)
    copy = Ledger(ledger.blueprint)
    copy.load({name: tensor.clone() for name, tensor in ledger.tensors().items()})
    for name, tensor in ledger.tensors().items():
        assert torch.equal(copy.tensors()[name], tensor)
        assert copy.tensors()[name].dtype == tensor.dtype


def test_memory_follows_the_connections_not_the_width() -> None:
    sizes = [sum(t.nbytes for t in learned(Case(hidden=(width, width))).tensors().values()) for width in (40, 4000)]
    assert sizes[1] - sizes[0] == 2 * (4000 - 40) * (2 + 4)  # a unit's state and its bias, nothing squared


def test_used_units_have_a_connection() -> None:
    ledger = Ledger(build_mlp((3,), (4,)))
    ledger.add(ledger.blueprint.links[0], connections((0, 1), (2, 3)))
    assert ledger.used("input").tolist() == [True, False, True]
    assert ledger.used("hidden1").tolist() == [False, True, False, True]
