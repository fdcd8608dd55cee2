"""Rotation labels: four orientations, each with classes of its own while a task is trained."""

import pytest
import torch

from spacenet.errors import SettingsError
from spacenet.methods.base import Batch
from spacenet.methods.shared.rotations import check_rotatable, make_rotated_head, rotate_batch, rotate_targets
from spacenet.methods.shared.sparse_settings import AdaptiveSettings
from spacenet.methods.spacenet import SpaceNet
from tests.methods.support import copy_state, learn, small_stream
from tests.nets.test_convolutions import TRAINING, images, tiny_cnn

SMALL = {"selected": (0,), "reserved": (1, 1, 2, 2, 4), "connections": (0.1,)}


def spacenet(rotations: str) -> SpaceNet:
    return SpaceNet(tiny_cnn(), AdaptiveSettings(**SMALL, rotations=rotations), 0)  # type: ignore[arg-type]


def test_images_are_rotated_by_quarter_turns() -> None:
    x = torch.tensor([[[1, 2], [3, 4]]])
    assert rotate_batch(x).tolist() == [[[1, 2], [3, 4]], [[2, 4], [1, 3]], [[4, 3], [2, 1]], [[3, 1], [4, 2]]]
    assert rotate_targets(torch.tensor([0, 1]), 5).tolist() == [0, 1, 5, 6, 10, 11, 15, 16]


def test_the_outputs_for_rotated_images_follow_the_upright_ones_and_are_trained() -> None:
    method, task = spacenet("first"), images(1)[0]
    method.begin_task(task, task.train)
    batch = Batch(task.train.x[:3], task.train.y[:3], torch.arange(3))
    output = method.forward(batch)
    assert output.shape == (12, 8)
    assert method.target(batch).tolist() == rotate_targets(batch.y, 2).tolist()
    method.loss(output, batch).backward()
    assert method.rotated_head is not None
    assert all(bool((parameter.grad != 0).any()) for parameter in method.rotated_head.parameters())  # type: ignore[union-attr]
    assert {id(p) for p in method.rotated_head.parameters()} < {id(p) for p in method.parameters()}


@pytest.mark.parametrize(("rotations", "expected"), [("none", [0, 0]), ("first", [1, 0]), ("all", [1, 1])])
def test_in_the_first_task_or_in_all_and_never_in_what_is_kept(rotations: str, expected: list[int]) -> None:
    method, stream, found = spacenet(rotations), images(2), []
    for task in stream:
        method.begin_task(task, task.train)
        found.append(int(method.rotated_head is not None))
        method.end_task(task)
        assert method.rotated_head is None
    assert found == expected
    plain = spacenet("none")
    learn(plain, stream, TRAINING)
    assert set(method.state()) == set(plain.state())
    assert method.predict(stream[0].test.x).shape[1] == 4


def test_accuracy_is_of_all_positions_and_at_most_100() -> None:
    assert all(epoch.accuracy <= 100 for epoch in learn(spacenet("all"), images(1), TRAINING))


def test_a_checkpoint_holds_them() -> None:
    method, task = spacenet("first"), images(1)[0]
    method.begin_task(task, task.train)
    assert method.rotated_head is not None
    method.rotated_head.weight.data.add_(1.0)
    again = spacenet("first")
    again.load_state(copy_state(method))
    again.resume_task(task, task.train)
    assert again.rotated_head is not None
    assert torch.equal(again.rotated_head.weight, method.rotated_head.weight)
    assert torch.equal(again.rotated_head.bias, method.rotated_head.bias)


def test_a_seed_gives_the_same_outputs() -> None:
    made = [make_rotated_head(3, 2, torch.Generator().manual_seed(5), torch.device("cpu")) for _ in range(2)]
    assert torch.equal(made[0].weight, made[1].weight)
    assert made[0](torch.ones(1, 3)).shape == (1, 6)


@pytest.mark.parametrize("shape", [(8,), (3, 4, 5)])
def test_what_cannot_be_rotated_is_an_error(shape: tuple[int, ...]) -> None:
    with pytest.raises(SettingsError, match=r"rotations: samples of the shape \(.*\) are not square images"):
        check_rotatable(shape)
    if len(shape) == 1:
        with pytest.raises(SettingsError, match="rotations"):
            SpaceNet(tiny_cnn(), AdaptiveSettings(**SMALL, rotations="all"), 0).check(small_stream())  # type: ignore[arg-type]
