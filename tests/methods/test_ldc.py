import torch
from torch.nn import functional as F

from spacenet.methods.base import Batch
from spacenet.methods.ldc import LDC, drift
from tests.methods.support import accuracy, copy_state, learn, make, small_stream


def ldc(**settings: object) -> LDC:
    method = make(LDC, settings)
    assert isinstance(method, LDC)
    return method


def test_an_affine_drift_is_found_from_samples() -> None:
    rng = torch.Generator().manual_seed(0)
    old, at = torch.randn(500, 4, generator=rng) + 3, torch.randn(6, 4, generator=rng)
    matrix, shift = torch.randn(4, 4, generator=rng), torch.randn(4, generator=rng)
    found = drift(old, old @ matrix + shift, at, ridge=1e-9)
    torch.testing.assert_close(found.float(), at @ matrix + shift - at, rtol=1e-4, atol=1e-4)


def test_where_samples_do_not_vary_nothing_drifts_but_the_mean() -> None:
    old = torch.tensor([[1.0, 5.0], [2.0, 5.0], [3.0, 5.0]])
    new = old + torch.tensor([0.5, 0.0])
    found = drift(old, new, torch.tensor([[2.0, 5.0], [2.0, 50.0]]), ridge=1e-3)
    torch.testing.assert_close(found.float(), torch.tensor([[0.5, 0.0], [0.5, 0.0]]))
    assert not drift(old, old, old, ridge=1e-3).any()


def test_old_means_move_with_the_features_and_new_ones_are_measured() -> None:
    method, stream = ldc(), small_stream()
    learn(method, stream[:1])
    before, means, x = method.copy_params(), method.means.clone(), stream[1].train.x
    learn(method, list(stream)[1:2])
    moved = means + drift(method.features_of(before, x), method.features(x), means, 1e-3)
    torch.testing.assert_close(method.means[:2], moved.float(), rtol=1e-4, atol=1e-5)
    own = [method.features(x[stream[1].train.y == number]).mean(0) for number in (2, 3)]
    torch.testing.assert_close(method.means[2:], torch.stack(own))


def test_means_follow_features_that_grow() -> None:
    """Rectified units with all incoming weights and biases times 1.5 are 1.5 times as active. Those that the new task
    never activates say nothing about how they changed."""
    method, stream = ldc(ridge=1e-9), small_stream()
    learn(method, stream[:1])
    before, task = method.means.clone(), stream[1]
    method.begin_task(task, task.train)
    for name in method.param_names("hidden2"):
        method.params[name].data *= 1.5
    method.end_task(task)
    seen = method.features(task.train.x).std(0) > 0
    torch.testing.assert_close(method.means[:2, seen], 1.5 * before[:, seen], rtol=0.02, atol=0.02)


def test_the_nearest_mean_wins() -> None:
    method, stream = ldc(), small_stream()
    learn(method, stream)
    x = stream[0].test.x
    by_hand = (method.features(x)[:, None] - method.means).norm(dim=2)
    torch.testing.assert_close(method.predict(x), -by_hand, rtol=1e-3, atol=1e-3)
    assert sum(accuracy(method, stream)) / 3 > 0.6
    assert method.extra_bytes() == 4 * 6 * 30


def test_the_loss_is_over_the_tasks_own_classes_with_distillation_of_the_old_ones() -> None:
    method, stream = ldc(strength=2.0), small_stream()
    learn(method, stream[:1])
    task, batch = stream[1], Batch.pick(stream[1].train, torch.arange(7))
    old = method.blueprint.forward(method.params, batch.x)
    method.begin_task(task, task.train)
    scores = method.compute(batch.x)
    expected = F.cross_entropy(scores[:, 2:], batch.y - 2) + 2 * method.distillation(scores[:, :2], old)
    torch.testing.assert_close(method.loss(method.forward(batch), batch), expected)


def test_it_comes_back_from_a_file() -> None:
    method, again, stream = ldc(), ldc(), small_stream()
    learn(method, stream[:2])
    again.load_state(copy_state(method))
    for each in (method, again):
        learn(each, list(stream)[2:])
    assert torch.equal(method.predict(stream[0].test.x), again.predict(stream[0].test.x))
