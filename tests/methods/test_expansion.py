"""A network that grows while it learns."""

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch

from spacenet.config.model import NetConfig, PreprocessingConfig
from spacenet.config.training import TrainingConfig
from spacenet.data.dataset import Dataset
from spacenet.data.stream import Stream
from spacenet.errors import SettingsError, SpaceFull
from spacenet.methods.shared import sparse
from spacenet.methods.spacenet import SpaceNet
from spacenet.nets import build_net
from tests.methods.support import TRAINING, copy_state, learn, make, small_stream

TIGHT: dict[str, Any] = {"selected": (10,), "reserved": (8,), "connections": (40, 60, 12)}


def tight(**settings: Any) -> SpaceNet:
    method = make(SpaceNet, {**TIGHT, **settings}, hidden=(20, 20))
    assert isinstance(method, SpaceNet)
    return method


def test_without_expansion_the_space_runs_out() -> None:
    method = tight()
    assert method.check(small_stream()) == ["the space holds 2 of the stream's 3 tasks with these settings"]
    with pytest.raises(SpaceFull, match="hidden1 is full"):
        learn(method, small_stream())


@pytest.mark.parametrize("expand", ["auto", "3:hidden1=10,hidden2=10"])
def test_an_expanded_network_learns_on_and_computes_the_same_at_that_moment(expand: str) -> None:
    method, stream = tight(expand=expand), small_stream()
    assert method.check(stream) == []
    learn(method, stream[:2])
    x = stream[0].test.x
    before = method.predict(x)
    task = stream[2]
    method.begin_task(task, task.train)
    assert method.ledger.size("hidden1") > 20
    assert method.ledger.size("hidden2") > 20
    method.invalidate()  # the task's outputs exist, but have no connections yet
    after = method.predict(x)
    assert torch.equal(after[:, :4], before)
    assert not after[:, 4:].any()


def test_a_resumed_run_does_not_expand_twice() -> None:
    method, stream = tight(expand="auto"), small_stream()
    learn(method, stream)
    sizes = {name: method.ledger.size(name) for name in ("hidden1", "hidden2")}
    again = tight(expand="auto")
    learn(again, stream[:2])
    again.begin_task(stream[2], stream[2].train)
    resumed = tight(expand="auto")
    resumed.load_state(copy_state(again))
    resumed.resume_task(stream[2], stream[2].train)
    assert {name: resumed.ledger.size(name) for name in sizes} == sizes
    assert min(sizes.values()) > 20


def test_a_layer_without_free_connections_grows_too() -> None:
    # Nothing is reserved, but all positions between the layers are taken after the first task.
    method = make(
        SpaceNet, {"selected": (0,), "reserved": (0,), "connections": (40, 36, 12), "expand": "auto"}, hidden=(6, 6)
    )
    learn(method, small_stream(), dataclasses.replace(TRAINING, epochs=1))
    assert method.layer_usage()[1].connections == 3 * 36


def test_a_plan_that_cannot_be_is_refused_before_training() -> None:
    with pytest.raises(SettingsError, match="expand"):
        tight(expand="2:nowhere=3").check(small_stream())
    with pytest.raises(SettingsError, match="is not a plan"):
        tight(expand="nonsense")


def many_tasks(tasks: int, shape: tuple[int, ...] = (8,)) -> Stream:
    """Tasks of two classes with three samples each."""
    rng, y = np.random.default_rng(0), np.repeat(np.arange(2 * tasks), 3)
    x = rng.normal(size=(len(y), *shape)).astype(np.float32)
    cut = tuple((2 * task, 2 * task + 1) for task in range(tasks))
    return Stream(
        "many", Dataset("many", x, y, x, y), cut, preprocessing=PreprocessingConfig(centering=0.0, standardize="all")
    )


SHORT = TrainingConfig(epochs=1, batch_size=6, learning_rate=0.1)


@pytest.mark.parametrize("expected", [2, 5, 10])
def test_an_mlp_that_expands_never_runs_out_of_space(expected: int) -> None:
    """Shares of grown layers would soon be more connections than fit between the units that a task selects."""
    method = make(SpaceNet, {"expand": "auto", "expected_tasks": expected}, hidden=(40, 40))
    assert isinstance(method, SpaceNet)
    learn(method, list(many_tasks(100)), SHORT)
    assert method.tasks_learned == 100
    part = 40 // expected
    assert method.ledger.size("hidden2") <= 40 + 100 * part  # what each task reserves, and a little more


@pytest.mark.parametrize(("net", "hidden", "tasks"), [("small-cnn", (4, 4, 4, 4, 8), 40), ("wrn-10-1", (), 12)])
def test_a_convolutional_network_that_expands_never_runs_out_of_space(
    net: str, hidden: tuple[int, ...], tasks: int
) -> None:
    method = SpaceNet(build_net(NetConfig(net, hidden), (3, 8, 8)), SpaceNet.Settings(expand="auto"), 0)
    learn(method, list(many_tasks(tasks, (3, 8, 8))), SHORT)
    assert method.tasks_learned == tasks


def test_a_task_that_takes_all_positions_between_its_units_finds_new_units() -> None:
    method = make(SpaceNet, {"expand": "auto", "selected": (6,), "reserved": (1,), "connections": (48, 36, 12)})
    learn(method, list(many_tasks(20)), SHORT)
    assert method.tasks_learned == 20


def test_an_expansion_that_does_not_help_does_not_recommend_expansion(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse, "MAX_GROWTH", 1)
    method = make(SpaceNet, {"expand": "auto", "selected": (6,), "reserved": (6,), "connections": (48, 36, 12)})
    with pytest.raises(SpaceFull, match="Fewer connections per task") as raised:
        learn(method, list(many_tasks(20)), SHORT)
    assert "expand" not in f"{raised.value} {raised.value.for_cli()}"
