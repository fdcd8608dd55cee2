import math

import pytest
import torch
from torch.nn import functional as F

from spacenet.errors import SettingsError
from spacenet.methods.base import Batch
from spacenet.methods.lwf import LwF
from spacenet.utils.optimizers import SGD
from tests.methods.support import accuracy, learn, make, small_stream, task_state


def lwf(**settings: object) -> LwF:
    method = make(LwF, settings)
    assert isinstance(method, LwF)
    return method


def test_distillation_is_the_cross_entropy_of_softened_scores() -> None:
    """Scores 2 log 3 and 0 at temperature 2 are probabilities ¾ and ¼; 0 and 0 are ½ and ½."""
    old, new = torch.tensor([[2 * math.log(3), 0.0]]), torch.tensor([[0.0, 0.0]])
    method = lwf(temperature=2.0)
    assert float(method.distillation(new, old)) == pytest.approx(math.log(2))
    by_hand = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25))
    assert float(method.distillation(old, old)) == pytest.approx(by_hand)
    assert float(method.distillation(-old, old)) == pytest.approx(-(0.75 * math.log(0.25) + 0.25 * math.log(0.75)))


def test_the_old_networks_scores_for_old_classes_are_the_target() -> None:
    method, stream = lwf(strength=3.0), small_stream()
    learn(method, stream[:1])
    task, batch = stream[1], Batch.pick(stream[1].train, torch.arange(7))
    before = method.predict(batch.x)
    method.begin_task(task, task.train)
    for value in method.params.values():
        value.data += 0.1
    output = method.forward(batch)
    by_hand = F.cross_entropy(output, batch.y) + 3 * method.distillation(output[:, :2], before)
    torch.testing.assert_close(method.loss(output, batch), by_hand)
    assert set(task_state(method)) == {f"task/old/{name}" for name in method.params}


def test_with_a_softmax_of_their_own_new_classes_do_not_push_old_ones_down() -> None:
    method, stream = lwf(strength=0.0, loss_over="own"), small_stream()
    learn(method, stream[:1])
    method.begin_task(stream[1], stream[1].train)
    batch = Batch.pick(stream[1].train, torch.arange(7))
    output = method.forward(batch)
    assert output.shape == (7, 2)
    assert torch.equal(method.loss(output, batch), F.cross_entropy(output, batch.y - 2))


def test_the_first_task_has_nothing_to_distil_and_nothing_is_kept_between_tasks() -> None:
    method, stream = lwf(), small_stream()
    method.begin_task(stream[0], stream[0].train)
    batch = Batch.pick(stream[0].train, torch.arange(7))
    output = method.forward(batch)
    assert torch.equal(method.loss(output, batch), F.cross_entropy(output, batch.y))
    method = lwf()
    learn(method, stream)
    assert accuracy(method, stream)[-1] > 0.9
    assert not method.extra_state()
    assert not task_state(method)


def test_distillation_keeps_old_answers_among_old_classes() -> None:
    changes = []
    for strength in (0.0, 5.0):
        method, stream = lwf(strength=strength), small_stream()
        learn(method, stream[:1])
        x = stream[1].train.x
        before = (method.predict(x) / 2).softmax(1)
        method.begin_task(stream[1], stream[1].train)
        optimizer = SGD(method.parameters(), 0.1)
        batch = Batch.pick(stream[1].train, torch.arange(len(x)))
        for _ in range(30):
            optimizer.zero_grad()
            method.loss(method.forward(batch), batch).backward()
            optimizer.step()
        changes.append(float(((method.predict(x)[:, :2] / 2).softmax(1) - before).abs().mean()))
    assert changes[1] < 0.5 * changes[0]


def test_settings_are_checked() -> None:
    with pytest.raises(SettingsError, match="strength"):
        LwF.Settings(strength=-1.0)
    with pytest.raises(SettingsError, match="temperature"):
        LwF.Settings(temperature=0.0)
