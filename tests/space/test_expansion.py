import pytest
import torch

from spacenet.errors import SettingsError
from spacenet.nets.mlp import build_mlp
from spacenet.space.expansion import Plan
from spacenet.space.ledger import Ledger


def test_a_plan_names_tasks_layers_and_units() -> None:
    plan = Plan.parse("6:conv2=8, conv3=4/7:conv1=1")
    assert plan.before == {5: {"conv2": 8, "conv3": 4}, 6: {"conv1": 1}}
    assert not plan.auto
    assert Plan.parse("auto").auto
    assert Plan.parse(None) == Plan()


@pytest.mark.parametrize(
    "text", ["", "conv2=8", "6", "6:conv2", "six:conv2=8", "6:conv2=many", "0:conv2=8", "6:conv2=0", "6:conv2=10000001"]
)
def test_what_is_no_plan(text: str) -> None:
    with pytest.raises(SettingsError, match="expand"):
        Plan.parse(text)


def test_layers_and_tasks_that_are_not_there() -> None:
    with pytest.raises(SettingsError, match="hidden1, hidden2"):
        Plan.parse("2:hidden9=1").check_layers(build_mlp((4,), (5, 6)))
    with pytest.raises(SettingsError, match="the stream has 3"):
        Plan.parse("4:hidden1=1").check_tasks(3)


def test_units_come_before_the_task_that_is_named() -> None:
    ledger = Ledger(build_mlp((4,), (5, 6)))
    plan = Plan.parse("2:hidden2=3")
    plan.carry_out(ledger, 0)
    assert ledger.size("hidden2") == 6
    plan.carry_out(ledger, 1)
    assert ledger.size("hidden2") == 9
    assert torch.equal(ledger.free("hidden2"), torch.arange(9))
