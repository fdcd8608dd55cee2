import pytest
from spacenet.space.sizing import TaskBudget, default_budget

from spacenet.methods.spacenet import SpaceNet
from spacenet.nets.mlp import mlp
from spacenet.nets.small_cnn import small_cnn
from spacenet.space.allocation import check


def test_for_the_papers_network_and_five_tasks_it_is_near_the_papers_numbers() -> None:
    sizes = default_budget(mlp(784, (400, 400)), 5)
    assert (sizes.selected, sizes.reserved) == ([80, 80], [40, 40])
    method = SpaceNet(mlp(784, (400, 400)), SpaceNet.Settings(), 0)
    assert dict(method.budget(2).connections) == {
        "input-hidden1": 80 * 112,
        "hidden1-hidden2": 80 * 36,
        "hidden2-output": 2 * 36,
    }


@pytest.mark.parametrize("tasks", [1, 2, 7, 30])
@pytest.mark.parametrize("inputs", [1, 3, 50])
def test_the_expected_tasks_fit(tasks: int, inputs: int) -> None:
    method = SpaceNet(mlp(inputs, (60, 60)), SpaceNet.Settings(expected_tasks=tasks, unused_first=True), 0)
    assert method.space_left(2) >= tasks


def test_feature_maps_are_shared_more() -> None:
    assert default_budget(small_cnn((3, 32, 32)), 5) == TaskBudget((0,), [2, 2, 4, 4, 34], (0.15,))


@pytest.mark.parametrize("selected", [(12,), (12, 30), (0, 12)])
def test_the_rest_follows_what_is_given(selected: tuple[int, ...]) -> None:
    method = SpaceNet(mlp(10, (60, 60)), SpaceNet.Settings(selected=selected), 0)
    widths = [count or 60 for count in (selected * 2)[:2]]
    budget = method.budget(2)
    assert list(budget.selected.values()) == widths
    assert list(budget.reserved.values()) == [count // 2 for count in widths]
    check(method.ledger, budget, 2)
