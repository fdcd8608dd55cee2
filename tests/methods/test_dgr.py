import math

import pytest
import torch
from torch import tensor

from spacenet.config.training import TrainingConfig
from spacenet.data.stream import Samples
from spacenet.errors import SettingsError
from spacenet.methods.base import Batch
from spacenet.methods.dgr import DGR
from tests.methods.support import accuracy, learn, make, small_stream

SMALL = {"generator_hidden": (40,), "latent": 8}
TRAINING = TrainingConfig(epochs=25, batch_size=10, learning_rate=0.005, optimizer="adam")


def second_task(**settings: object) -> tuple[DGR, Samples]:
    """A method that is about to learn its second task; all its numbers are 0, so that every score is 0."""
    method, stream = make(DGR, {**SMALL, **settings}), small_stream()
    assert isinstance(method, DGR)
    learn(method, stream[:1])
    for value in method.parameters():
        value.data.zero_()
    method.begin_task(stream[1], stream[1].train)
    for value in method.parameters():
        value.data.zero_()
    method.begin_epoch(0)
    return method, stream[1].train


def test_it_remembers_without_keeping_samples() -> None:
    method, stream = make(DGR, SMALL), small_stream()
    learn(method, stream[:2], TRAINING)
    assert min(accuracy(method, stream[:2])) > 0.8
    assert len(method.memory) == 0


def test_the_new_task_counts_one_part_and_the_replayed_ones_the_rest() -> None:
    method, data = second_task()
    batch = Batch.pick(data, torch.arange(6))
    output = method.forward(batch)
    assert method.loss(output, batch).item() == pytest.approx(math.log(4) + math.log(2))
    method.tasks_learned = 3  # as if it were the fourth
    method.params["output.bias"].data.copy_(tensor([math.log(3), 0.0, 0.0, 0.0]))  # 3/6 for class 0, which is replayed
    output = method.forward(batch)
    expected = math.log(6) / 4 + math.log(2) * 3 / 4 + math.log(2)
    assert method.loss(output, batch).item() == pytest.approx(expected)


def test_soft_labels_are_the_old_probabilities_at_the_temperature() -> None:
    method, data = second_task(soft_labels=True)
    method.old["output.bias"].copy_(tensor([2 * math.log(3), 0.0]))  # at temperature 2: 3/4 and 1/4
    method.params["output.bias"].data.copy_(tensor([2 * math.log(2), 0.0, 0.0, 0.0]))  # 2/5 and three times 1/5
    batch = Batch.pick(data, torch.arange(6))
    output = method.forward(batch)
    new = -math.log(1 / 7)  # at temperature 1: 4/7 and three times 1/7
    old = -4 * (3 / 4 * math.log(2 / 5) + 1 / 4 * math.log(1 / 5))
    assert method.loss(output, batch).item() == pytest.approx(new / 2 + old / 2 + math.log(2))


def test_what_is_replayed_comes_from_the_old_generator_and_classifier() -> None:
    method, stream = make(DGR, SMALL), small_stream()
    assert isinstance(method, DGR)
    learn(method, stream[:1])
    classifier, old_vae = {name: value.detach().clone() for name, value in method.params.items()}, method.vae.copy()
    method.begin_task(stream[1], stream[1].train)
    method.begin_epoch(0)
    for value in method.parameters():
        value.data += 0.1
    batch = Batch.pick(stream[1].train, torch.arange(5))
    output = method.forward(batch)
    dreams = old_vae.sample(method.noise[:5, :8])
    x = dreams * method.span + method.low  # as it comes from the stream
    torch.testing.assert_close(batch.saved["generated"], dreams)
    torch.testing.assert_close(batch.saved["labels"], method.blueprint.forward(classifier, dreams))
    torch.testing.assert_close(output, method.predict(batch.x))
    torch.testing.assert_close(batch.saved["replayed"], method.predict(x))


def test_inputs_of_the_first_task_lie_between_0_and_1_for_the_generator() -> None:
    method, stream = make(DGR, SMALL), small_stream()
    assert isinstance(method, DGR)
    method.begin_task(stream[0], stream[0].train)
    unit = (stream[0].train.x - method.low) / method.span
    assert float(unit.min()) == 0.0
    assert float(unit.max()) == 1.0
    assert unit.amin(0).tolist() == [0.0] * 8
    learn(method, stream[:1])
    assert torch.equal(method.extra_state()["low"], stream[0].train.x.amin(0))


def test_the_generator_is_kept_and_counted() -> None:
    method, stream = make(DGR, SMALL), small_stream()
    learn(method, stream[:1])
    numbers = (8 * 40 + 40) + (40 * 16 + 16) + (8 * 40 + 40) + (40 * 8 + 8)
    assert method.extra_bytes() == 4 * (numbers + 8 + 1)
    assert len(method.parameters()) == 6 + 8


def test_settings_that_cannot_work_are_refused() -> None:
    with pytest.raises(SettingsError, match="latent: 0"):
        make(DGR, {"latent": 0})
    with pytest.raises(SettingsError, match="generator_hidden"):
        make(DGR, {"generator_hidden": ()})
