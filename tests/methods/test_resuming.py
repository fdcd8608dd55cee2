"""Every method: a task that is interrupted and resumed ends in exactly the same state as one that is not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor

from spacenet.config.training import TrainingConfig
from spacenet.data.stream import Stream
from spacenet.methods.base import Method
from spacenet.methods.shared.sparse import SparseMethod
from spacenet.nets.mlp import build_mlp
from spacenet.registry import METHODS
from spacenet.space.blueprint import Blueprint
from spacenet.training.loop import Epoch, Position, learn_task
from spacenet.utils.optimizers import Optimizer
from tests.methods.support import LIGHT, copy_state, learn, small_stream
from tests.nets.test_convolutions import images, tiny_cnn

SGD = TrainingConfig(epochs=4, batch_size=10, learning_rate=0.02, momentum=0.5, weight_decay=0.01)
ADAM = TrainingConfig(epochs=4, batch_size=10, learning_rate=0.01, optimizer="adam")
IMAGES = replace(SGD, epochs=2, batch_size=8, augment="crop-flip")
SPACE: Mapping[str, object] = {"selected": (5,), "reserved": (2,), "connections": (0.1,)}
VARIANTS: list[tuple[str, dict[str, object]]] = [
    *((name, {}) for name in METHODS),
    ("dgr", {"generator_hidden": (12, 10, 9, 8), "latent": 4, "soft_labels": True}),
    ("den", {"expand_above": 0.0, "expand_by": 3, "split_above": 0.05}),
    ("spacenet", {"balance": "logits"}),
    ("spacenet", {"expand": "auto", "reserved": (14,), "selected": (14,)}),
    ("spacenet-experts", {"reads": "all"}),
    ("spacenet-rehearsal", {"replay": "statistics", "replay_components": 2, "replay_directions": 3}),
]
WITHOUT_EPOCHS = {"gaussian", "ncm", "slda", "ranpac", "fecam", "dense-density", "acil"}
"""Methods that train nothing after the first task, so that there is no middle to stop in."""


@dataclass(frozen=True)
class Stopped:
    """What a checkpoint holds."""

    state: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    memory: dict[int, Tensor]


@dataclass(frozen=True)
class Whole:
    """What a method is after a task."""

    state: dict[str, Tensor]
    scores: Tensor
    shapes: dict[str, tuple[int, ...]]


def build(name: str, settings: Mapping[str, object], blueprint: Blueprint) -> Method:
    kind: type[Method] = METHODS[name]
    return kind(
        blueprint,
        kind.Settings(**{**(SPACE if issubclass(kind, SparseMethod) else LIGHT.get(name, {})), **settings}),
        5,
    )


def shapes(method: Method) -> dict[str, tuple[int, ...]]:
    return {name: tuple(parameter.shape) for name, parameter in method.named_parameters().items()}


def learn_and_stop(
    method: Method, stream: Stream, training: TrainingConfig, stops: Sequence[int]
) -> dict[int, Stopped]:
    """Learn the second task to its end; what checkpoints after so many epochs would hold."""
    found: dict[int, Stopped] = {}

    def on_epoch(epoch: Epoch, optimizer: Optimizer) -> None:
        if (after := epoch.epoch + 1) in stops and after not in found:
            history = {name: tensor.clone() for name, tensor in sorted(optimizer.state_tensors().items())}
            memory = {task: rows.clone() for task, rows in method.memory.rows.items()}
            found[after] = Stopped(copy_state(method), history, memory)

    learn_task(method, stream[1], training, on_batch=lambda done, total: None, on_epoch=on_epoch)
    return found


def resume(method: Method, stream: Stream, training: TrainingConfig, stopped: Stopped, after: int) -> None:
    """Learn the rest of the second task from the checkpoint."""
    method.memory.restore(stream, stopped.memory)
    method.load_state(stopped.state)
    learn_task(
        method,
        stream[1],
        training,
        start=Position(after, stopped.optimizer),
        on_batch=lambda done, total: None,
        on_epoch=lambda epoch, optimizer: None,
    )


def everything(method: Method, x: Tensor) -> Whole:
    return Whole(copy_state(method), method.predict_all(x), shapes_between_tasks(method))


def assert_same(one: Whole, other: Whole, after: int) -> None:
    assert one.state.keys() == other.state.keys()
    for name, tensor in one.state.items():
        assert torch.equal(tensor, other.state[name]), (name, after)
    assert torch.equal(one.scores, other.scores), after
    assert one.shapes == other.shapes, after


def shapes_between_tasks(method: Method) -> dict[str, tuple[int, ...]]:
    return {} if isinstance(method, SparseMethod) else shapes(method)


def check(
    name: str, settings: Mapping[str, object], stream: Stream, training: TrainingConfig, stops: Sequence[int]
) -> None:
    """The second task is resumed from each checkpoint; after it and after the third, all is as without a stop."""
    blueprint = tiny_cnn if stream.name == "images" else lambda: build_mlp((8,), (20, 16))
    x = torch.cat([task.test.x for task in stream])
    whole = build(name, settings, blueprint())
    learn(whole, stream[:1], training)
    stopped = learn_and_stop(whole, stream, training, stops)
    assert list(stopped) == ([] if name in WITHOUT_EPOCHS else list(stops))
    if not stopped:
        return
    second = everything(whole, x)
    learn(whole, [stream[2]], training)
    third = everything(whole, x)
    for after, checkpoint in stopped.items():
        again = build(name, settings, blueprint())
        resume(again, stream, training, checkpoint, after)
        assert_same(second, everything(again, x), after)
        learn(again, [stream[2]], training)
        assert_same(third, everything(again, x), after)


@pytest.mark.parametrize(("training", "stops"), [(SGD, (1, 3, 4)), (ADAM, (3,))], ids=["sgd", "adam"])
@pytest.mark.parametrize(("name", "settings"), VARIANTS)
def test_a_resumed_task_ends_in_the_same_state(
    name: str, settings: dict[str, object], training: TrainingConfig, stops: tuple[int, ...]
) -> None:
    check(name, settings, small_stream(), training, stops)


@pytest.mark.parametrize("name", METHODS)
def test_a_resumed_task_of_images_ends_in_the_same_state(name: str) -> None:
    rotations: dict[str, object] = {"rotations": "all"} if issubclass(METHODS[name], SparseMethod) else {}
    check(name, rotations, images(), IMAGES, (1,))


@pytest.mark.parametrize("name", METHODS)
def test_a_state_that_was_loaded_is_the_state(name: str) -> None:
    """Also into a method that has learned something else, and in the middle of a task before it is resumed."""
    stream = small_stream()
    method, other = build(name, {}, build_mlp((8,), (20, 16))), build(name, {}, build_mlp((8,), (20, 16)))
    learn(other, small_stream(((5, 4), (3, 2))), SGD)
    learn(method, stream[:1], SGD)
    states = [copy_state(method)]
    method.begin_task(stream[1], method.training_data(stream[1]))
    states.append(copy_state(method))
    for state in states:
        other.memory.restore(stream, {0: method.memory.rows[0]} if method.memory.rows else {})
        other.load_state(state)
        assert other.classes == [task.classes for task in stream][: len(other.classes)]
        assert other.in_task == (state is states[1])
        found = other.state()
        assert found.keys() == state.keys()
        assert all(torch.equal(tensor, state[key]) for key, tensor in found.items())


@pytest.mark.parametrize("name", METHODS)
def test_nothing_of_a_task_is_left_when_it_has_ended(name: str) -> None:
    method = build(name, {}, build_mlp((8,), (20, 16)))
    learn(method, small_stream(), SGD)
    assert not any(key.startswith("task/") for key in method.state())
    assert not method.in_task
