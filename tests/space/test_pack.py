import pytest
import torch
from hypothesis import given
from torch import Generator

from spacenet.space import pack as space_pack
from spacenet.space.pack import pack
from tests.space.support import Case, cases, dense_forward, learned


@given(cases)
def test_it_computes_what_the_plain_dense_network_computes(case: Case) -> None:
    ledger = learned(case)
    x = torch.randn(16, case.inputs, generator=case.rng(5))
    torch.testing.assert_close(pack(ledger)(x), dense_forward(ledger, x), atol=1e-5, rtol=1e-4)


@given(cases)
def test_units_that_reach_no_output_are_gone(case: Case) -> None:
    ledger = learned(case)
    packed = pack(ledger)
    last = ledger.blueprint.links[-1]
    assert set(packed.units[last.source].tolist()) == set(ledger.connections[last.name].source.tolist())
    for link in ledger.blueprint.links:
        if case.tasks:  # before the first task, a unit without connections stands for each hidden layer
            assert packed.params[link.name].shape == (len(packed.units[link.target]), len(packed.units[link.source]))


@given(cases)
def test_some_outputs_alone_are_computed_alike_with_fewer_units(case: Case) -> None:
    ledger = learned(case)
    x, output = torch.randn(16, case.inputs, generator=case.rng(5)), ledger.blueprint.output.name
    whole = pack(ledger)
    for first in range(ledger.size(output)):
        part = pack(ledger, ends={output: torch.tensor([first])})
        torch.testing.assert_close(part(x), whole(x)[:, [first]], atol=1e-5, rtol=1e-4)
        assert all(len(part.units[name]) <= len(units) for name, units in whole.units.items())


def test_a_very_sparse_pack_computes_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = learned(Case())
    x = torch.randn(5, Case().inputs, generator=Generator().manual_seed(0))
    dense = pack(ledger)
    monkeypatch.setattr(space_pack, "LARGE", 0)
    monkeypatch.setattr(space_pack, "SPARSE", 0)
    sparse = pack(ledger)
    links = [link.name for link in ledger.blueprint.links]
    assert all(sparse.params[name].layout == torch.sparse_csr for name in links)
    assert all(torch.equal(sparse.params[name].to_dense(), dense.params[name]) for name in links)
    assert torch.allclose(sparse(x), dense(x), atol=1e-5)
    assert pack(ledger, keep_dense=links).params[links[0]].layout == torch.strided
