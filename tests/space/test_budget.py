import pytest
import torch
from torch import Generator

from spacenet.errors import SettingsError, SpaceFull
from spacenet.nets.mlp import build_mlp
from spacenet.nets.residual import build_wide_resnet
from spacenet.nets.small_cnn import build_small_cnn
from spacenet.space.allocation import allocate, check, select, tasks_left
from spacenet.space.budget import ResolvedBudget, TaskBudget, default_budget, dense_budget
from spacenet.space.ledger import Connections, Ledger

WRN = build_wide_resnet((3, 32, 32))


def resolve(
    ledger: Ledger, selected: list[int], reserved: list[int], connections: list[float], classes: int
) -> ResolvedBudget:
    return TaskBudget(selected, reserved, connections).resolve(ledger, classes)


def rng() -> Generator:
    return Generator().manual_seed(0)


def test_one_number_stands_for_all_layers() -> None:
    budget = resolve(Ledger(build_mlp((10,), (20, 30))), [8], [3], [12], classes=2)
    assert budget.selected == {"hidden1": 8, "hidden2": 8}
    assert budget.reserved == {"hidden1": 3, "hidden2": 3}
    assert set(budget.connections.values()) == {12}
    assert budget.least == {}


def test_layers_of_one_group_share_their_numbers() -> None:
    budget = resolve(
        Ledger(build_wide_resnet((3, 8, 8), depth=10, widen=2, stem=4)), [4, 5, 6, 7], [0, 1, 2, 3], [0.5], classes=2
    )
    assert budget.selected["group2.0"] == budget.selected["group2.0.conv1"] == 6
    assert budget.reserved["group3.0"] == budget.reserved["group3.0.conv1"] == 3


def test_selected_0_means_all_that_is_free() -> None:
    ledger = Ledger(build_mlp((10,), (20, 30)))
    ledger.reserve("hidden1", torch.tensor([3, 5]), 0)
    assert resolve(ledger, [0, 7], [1], [12], 2).selected == {"hidden1": 18, "hidden2": 7}


@pytest.mark.parametrize(("selected", "connections"), [([1, 2, 3], [5]), ([4], [5, 5])])
def test_the_wrong_number_of_numbers(selected: list[int], connections: list[float]) -> None:
    with pytest.raises(SettingsError, match="numbers for") as info:
        resolve(Ledger(build_mlp((10,), (20, 30))), selected, [1], connections, 2)
    assert info.value.setting in ("selected", "connections")


def test_a_share_feeds_every_selected_unit_and_the_total_stays() -> None:
    budget = resolve(Ledger(WRN), [0, 40, 60, 120], [0, 16, 24, 60], [0.02], classes=20)
    assert budget.connections["input-stem"] == 16  # two percent of 48 kernels would be one
    sizes = {layer.name: layer.size for layer in WRN.layers} | {"output": 20}
    plain = sum(round(0.02 * sizes[link.source] * sizes[link.target]) for link in WRN.links)
    assert sum(budget.connections.values()) == plain


def test_units_with_ingoing_connections_need_no_more() -> None:
    ledger = Ledger(build_mlp((10,), (20, 30)))
    link = ledger.blueprint.links[0]
    some = torch.arange(15, dtype=torch.int32)
    ledger.add(link, Connections(some % 10, some, torch.zeros(15, dtype=torch.int16), torch.ones(15)))
    assert resolve(ledger, [0], [1], [0.01], 2).connections[link.name] == 5


def ledger_with(taken: int, link: int) -> Ledger:
    """An MLP 4-5-4 in which the first `taken` positions of a link are owned, row by row."""
    ledger = Ledger(build_mlp((4,), (5, 4)))
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
def test_units_that_are_connected_to_the_inputs_need_no_more(taken: int, given: int) -> None:
    ledger = ledger_with(taken, link=0)
    share = resolve(ledger, [0], [0], [0.5], 2)
    selection = select(ledger, share, torch.tensor([0, 1]), rng())
    assert len(allocate(ledger, share, selection, 1, rng())["input-hidden1"]) == given


def test_for_the_papers_network_and_five_tasks_the_default_is_near_the_papers_numbers() -> None:
    net = build_mlp((784,), (400, 400))
    budget = default_budget(net, 5)
    assert (budget.selected, budget.reserved) == ([80, 80], [40, 40])
    assert budget.resolve(Ledger(net), 2).connections == {
        "input-hidden1": 80 * 112,
        "hidden1-hidden2": 80 * 36,
        "hidden2-output": 2 * 36,
    }


def test_by_default_feature_maps_are_shared_more() -> None:
    assert default_budget(build_small_cnn((3, 32, 32)), 5) == TaskBudget((0,), [2, 2, 4, 4, 34], (0.15,))


@pytest.mark.parametrize("selected", [(12,), (12, 30), (0, 12)])
def test_the_rest_of_the_default_follows_the_selected_units(selected: tuple[int, ...]) -> None:
    ledger = Ledger(build_mlp((10,), (60, 60)))
    widths = [count or 60 for count in (selected * 2)[:2]]
    budget = default_budget(ledger.blueprint, 5, selected).resolve(ledger, 2)
    assert list(budget.selected.values()) == widths
    assert list(budget.reserved.values()) == [count // 2 for count in widths]
    check(ledger, budget, 2)


@pytest.mark.parametrize("tasks", [1, 2, 7, 30])
@pytest.mark.parametrize("inputs", [1, 3, 50])
def test_the_expected_tasks_fit_by_default(tasks: int, inputs: int) -> None:
    ledger = Ledger(build_mlp((inputs,), (60, 60)))
    default = default_budget(ledger.blueprint, tasks)
    assert tasks_left(ledger, lambda trial: default.resolve(trial, 2), 2, rng(), unused_first=True) >= tasks


def weights_of(ledger: Ledger, budget: ResolvedBudget) -> int:
    hidden = [link for link in ledger.blueprint.links if link not in ledger.blueprint.classifiers]
    return sum(budget.connections[link.name] * torch.Size(link.kernel).numel() for link in hidden)


@pytest.mark.parametrize("tasks", [1, 2, 5, 20])
@pytest.mark.parametrize("limit", [None, 10**6, 10**7])
def test_dense_parts_fill_the_network_or_stay_within_the_limit(tasks: int, limit: int | None) -> None:
    ledger = Ledger(WRN)
    budget = dense_budget(WRN, tasks, limit).resolve(ledger, 4)
    assert budget.selected == budget.reserved
    for link in WRN.links:
        sources, targets = (budget.selected.get(end, ledger.size(end)) for end in (link.source, link.target))
        assert budget.connections[link.name] == sources * (4 if link in WRN.classifiers else targets)
    fit = [ledger.size(name) // count for name, count in budget.selected.items() if count > 1]
    assert min(fit, default=tasks) >= tasks
    if limit is None:
        assert max(fit) <= tasks + 1
    else:
        assert weights_of(ledger, budget) * tasks <= limit or set(budget.selected.values()) == {1}


@pytest.mark.parametrize(
    ("tasks", "units"), [(5, (24, 96, 192, 384)), (10, (16, 64, 128, 256)), (20, (12, 48, 96, 192))]
)
def test_dense_parts_have_sizes_that_suit_a_gpu(tasks: int, units: tuple[int, ...]) -> None:
    wide = build_wide_resnet((3, 32, 32), depth=16, hidden=(240, 960, 1920, 3840))
    assert tuple(dense_budget(wide, tasks, 31_000_000).selected) == units
