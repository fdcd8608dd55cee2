import pytest

from spacenet.deploy.sizing import epochs_for, sized
from spacenet.errors import SettingsError
from spacenet.methods.architectural.spacenet import SpaceNet
from spacenet.nets.mlp import mlp
from spacenet.nets.small_cnn import small_cnn


def test_for_the_papers_network_and_five_tasks_it_is_near_the_papers_numbers() -> None:
    sizes = sized(mlp(784, (400, 400)), 5)
    assert sizes["selected"] == (80, 80)
    assert sizes["reserved"] == (40, 40)
    method = SpaceNet(mlp(784, (400, 400)), SpaceNet.Settings(**sizes), 0)  # type: ignore[arg-type]
    assert dict(method.demand(2).connections) == {
        "input-hidden1": 80 * 112,
        "hidden1-hidden2": 80 * 36,
        "hidden2-output": 2 * 36,
    }


@pytest.mark.parametrize("tasks", [1, 2, 7, 30])
@pytest.mark.parametrize("inputs", [1, 3, 50])
def test_the_expected_tasks_fit(tasks: int, inputs: int) -> None:
    blueprint = mlp(inputs, (60, 60))
    method = SpaceNet(blueprint, SpaceNet.Settings(**sized(blueprint, tasks), unused_first=True), 0)  # type: ignore[arg-type]
    assert method.space_left(2) >= tasks


def test_feature_maps_are_shared_more() -> None:
    sizes = sized(small_cnn((3, 32, 32)), 5)
    assert sizes == {"selected": (0,), "reserved": (2, 2, 4, 4, 34), "connections": (0.15,)}


def test_no_tasks_are_no_expectation() -> None:
    with pytest.raises(SettingsError, match="expected-tasks: 0"):
        sized(mlp(3, (5,)), 0)


def test_few_samples_are_seen_more_often() -> None:
    assert epochs_for(100_000, 32) == 4
    assert epochs_for(2_000, 32) == 9
    assert epochs_for(10, 32) == 100
