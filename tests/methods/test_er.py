import dataclasses
import math

import torch

from spacenet.data.stream import Samples
from spacenet.methods.base import Batch
from spacenet.methods.er import ER
from tests.methods.support import accuracy, learn, make, small_stream
from tests.nets.test_convolutions import images, tiny_cnn


def second_task() -> tuple[ER, Samples]:
    """A method that is about to learn its second task with four old samples."""
    method, stream = make(ER, {"memory_size": 8}), small_stream()
    learn(method, stream[:1])
    method.memory.trim(2)
    method.begin_task(stream[1], stream[1].train)
    assert isinstance(method, ER)
    return method, stream[1].train


def test_it_remembers_with_few_samples() -> None:
    method, stream = make(ER, {"memory_size": 30}), small_stream()
    learn(method, stream)
    assert min(accuracy(method, stream)) > 0.8
    assert len(method.memory) == 30


def test_the_loss_is_the_mean_over_new_and_old_samples() -> None:
    method, data = second_task()
    method.begin_epoch(0)
    for value in method.parameters():
        value.data.zero_()
    method.params["output.bias"].data[0] = math.log(3)  # of the four classes the first has 3/6, the others 1/6 each
    rows = torch.arange(10)
    batch = Batch.pick(data, rows)
    old = method.memory.samples().y[method.partners[:10]]
    mean_old = sum(math.log(2) if y == 0 else math.log(6) for y in old.tolist()) / 10
    loss = method.loss(method.forward(batch), batch)
    assert set(old.tolist()) == {0, 1}
    torch.testing.assert_close(loss.item(), (math.log(6) + mean_old) / 2, rtol=1e-6, atol=0)


def test_the_scores_it_gives_are_those_of_the_new_samples() -> None:
    method, data = second_task()
    method.begin_epoch(0)
    batch = Batch.pick(data, torch.arange(5))
    torch.testing.assert_close(method.forward(batch), method.predict(batch.x))
    torch.testing.assert_close(batch.saved["replayed"], method.predict(method.memory.samples().x[method.partners[:5]]))


def test_every_epoch_draws_anew_and_the_same_when_it_is_begun_again() -> None:
    method, _ = second_task()
    drawn = []
    for epoch in (0, 1, 0):
        method.begin_epoch(epoch)
        drawn.append(method.partners.clone())
    assert not torch.equal(drawn[0], drawn[1])
    assert torch.equal(drawn[0], drawn[2])
    assert sorted(drawn[0].unique().tolist()) == [0, 1, 2, 3]


def test_old_images_vary_where_new_ones_do() -> None:
    method, stream = ER(tiny_cnn(), ER.Settings(memory_size=8), 0), images(2)
    learn(method, stream[:1])
    method.begin_task(stream[1], dataclasses.replace(stream[1].train, augmented=True))
    method.begin_epoch(0)
    assert method.augment is not None
    assert not torch.equal(method.augment(torch.arange(4)), method.memory.samples().x[:4])
    method.begin_task(stream[1], stream[1].train)
    assert method.augment is None
