import pytest
import torch
from torch import Generator

from spacenet.errors import SettingsError, SpaceFull
from spacenet.nets.mlp import mlp
from spacenet.nets.wide_resnet import wide_resnet
from spacenet.space.allocation import allocate, select
from spacenet.space.budget import resolve
from spacenet.space.ledger import Connections, Ledger


def rng() -> Generator:
    return Generator().manual_seed(0)


def test_one_number_stands_for_all_layers() -> None:
    budget = resolve(Ledger(mlp(10, (20, 30))), [8], [3], [12], classes=2)
    assert budget.selected == {"hidden1": 8, "hidden2": 8}
    assert budget.reserved == {"hidden1": 3, "hidden2": 3}
    assert set(budget.connections.values()) == {12}
    assert budget.least == {}


def test_populations_of_one_group_share_their_numbers() -> None:
    budget = resolve(Ledger(wide_resnet(3, 10, 2, 4)), [4, 5, 6, 7], [0, 1, 2, 3], [0.5], classes=2)
    assert budget.selected["group2"] == budget.selected["group2.1"] == 6
    assert budget.reserved["group3"] == budget.reserved["group3.1"] == 3


def test_selected_0_means_all_that_is_free() -> None:
    ledger = Ledger(mlp(10, (20, 30)))
    ledger.reserve("hidden1", torch.tensor([3, 5]), 0)
    assert resolve(ledger, [0, 7], [1], [12], 2).selected == {"hidden1": 18, "hidden2": 7}


@pytest.mark.parametrize(("selected", "connections"), [([1, 2, 3], [5]), ([4], [5, 5])])
def test_the_wrong_number_of_numbers(selected: list[int], connections: list[float]) -> None:
    with pytest.raises(SettingsError, match="numbers for"):
        resolve(Ledger(mlp(10, (20, 30))), selected, [1], connections, 2)


def test_a_share_feeds_every_selected_unit_and_the_total_stays() -> None:
    budget = resolve(Ledger(wide_resnet(3)), [0, 40, 60, 120], [0, 16, 24, 60], [0.02], classes=20)
    assert budget.connections["input-stem"] == 16  # two percent of 48 kernels would be one
    sizes = {p.name: p.size for p in wide_resnet(3).layers} | {"output": 20}
    plain = sum(round(0.02 * sizes[link.source] * sizes[link.target]) for link in wide_resnet(3).links)
    assert sum(budget.connections.values()) == plain


def test_units_that_are_fed_already_need_no_more() -> None:
    ledger = Ledger(mlp(10, (20, 30)))
    link = ledger.blueprint.links[0]
    some = torch.arange(15, dtype=torch.int32)
    ledger.add(link, Connections(some % 10, some, torch.zeros(15, dtype=torch.int16), torch.ones(15)))
    assert resolve(ledger, [0], [1], [0.01], 2).connections[link.name] == 5


def ledger_with(taken: int, link: int) -> Ledger:
    """An MLP 4-5-4 in which so many of a link's positions are owned, row by row."""
    ledger = Ledger(mlp(4, (5, 4)))
    places = torch.arange(taken, dtype=torch.int32)
    sources = ledger.size(ledger.blueprint.links[link].source)
    owner, value = torch.zeros(taken, dtype=torch.int16), torch.ones(taken)
    ledger.add(ledger.blueprint.links[link], Connections(places % sources, places // sources, owner, value))
    return ledger


@pytest.mark.parametrize(("taken", "given"), [(5, 10), (15, 5), (16, None)])
def test_the_last_of_a_layer_is_taken_as_far_as_half_a_share_goes(taken: int, given: int | None) -> None:
    ledger = ledger_with(taken, link=1)
    share = resolve(ledger, [0], [0], [0.25, 0.5, 0.5], 2)
    assert share.connections["hidden1-hidden2"] == 10
    selection = select(ledger, share, torch.tensor([0, 1]), rng())
    if given is None:
        with pytest.raises(SpaceFull, match="hidden2 is full: 5 connections .* are needed, but only 4"):
            allocate(ledger, share, selection, 1, rng())
    else:
        assert len(allocate(ledger, share, selection, 1, rng())["hidden1-hidden2"]) == given


@pytest.mark.parametrize(("taken", "given"), [(10, 10), (18, 2), (20, 0)])
def test_units_that_the_inputs_feed_already_can_do_without_more(taken: int, given: int) -> None:
    ledger = ledger_with(taken, link=0)
    share = resolve(ledger, [0], [0], [0.5], 2)
    selection = select(ledger, share, torch.tensor([0, 1]), rng())
    assert len(allocate(ledger, share, selection, 1, rng())["input-hidden1"]) == given
