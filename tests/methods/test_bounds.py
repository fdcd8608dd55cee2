import torch

from spacenet.methods.joint import Joint
from spacenet.methods.naive import Naive
from tests.methods.support import accuracy, learn, make, small_stream


def test_naive_learns_the_last_task_and_forgets_the_others() -> None:
    method, stream = make(Naive), small_stream()
    learn(method, stream)
    result = accuracy(method, stream)
    assert result[-1] > 0.9
    assert result[0] < 0.5
    assert method.predict(stream[0].test.x).shape[1] == 6
    assert len(method.memory) == 0


def test_joint_learns_everything_and_keeps_everything() -> None:
    method, stream = make(Joint), small_stream()
    learn(method, stream)
    assert min(accuracy(method, stream)) > 0.85
    assert len(method.memory) == 180


def test_outputs_appear_with_their_classes_and_leave_the_old_ones_alone() -> None:
    method, stream = make(Naive), small_stream()
    method.begin_task(stream[0], stream[0].train)
    before = method.predict(stream[0].test.x)
    method.begin_task(stream[1], stream[1].train)
    after = method.predict(stream[0].test.x)
    assert after.shape[1] == 4
    torch.testing.assert_close(after[:, :2], before)


def test_layers_are_counted_whole() -> None:
    method = make(Naive)
    learn(method, small_stream())
    assert [(layer.name, layer.units, layer.connections) for layer in method.layer_usage()] == [
        ("hidden1", 30, 240),
        ("hidden2", 30, 900),
        ("output", 6, 180),
    ]
    assert method.bytes_kept() == 4 * (240 + 30 + 900 + 30 + 180 + 6)
