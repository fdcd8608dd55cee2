import math

import pytest
import torch
from torch import tensor
from torch.nn import functional as F

from spacenet.errors import SettingsError
from spacenet.methods.base import Batch
from spacenet.methods.icarl import ICaRL, herd
from tests.methods.support import accuracy, learn, make, small_stream


def test_herding_follows_the_mean() -> None:
    # The mean is 3. Nearest to it is 2 (1 away); then (2 + 5)/2 = 3.5 is nearer than (2 + 9)/2 or (2 + 0)/2 and
    # than (2 - 1)/2; then (2 + 5 + 0)/3 = 2.33 (0.67 away) beats (2 + 5 + 9)/3 and (2 + 5 - 1)/3 = 2 (1 away);
    # then (7 + 9)/4 = 4 (1 away) beats (7 - 1)/4 = 1.5.
    features = tensor([[9.0], [0.0], [5.0], [-1.0], [2.0]])
    assert herd(features, 5).tolist() == [4, 2, 1, 0, 3]
    assert herd(features, 2).tolist() == [4, 2]
    assert herd(features, 9).tolist() == [4, 2, 1, 0, 3]


def test_herding_weighs_lengths() -> None:
    # The mean is (1, 0): the nearest is (1, 0.5), though (2, 0) has the larger product with it.
    features = tensor([[2.0, 0.0], [1.0, 0.5], [0.0, -0.5]])
    assert herd(features, 1).tolist() == [1]


def test_the_loss_asks_new_outputs_for_the_class_and_old_ones_for_what_they_gave() -> None:
    method, stream = make(ICaRL, {"temperature": 1.0}), small_stream()
    assert isinstance(method, ICaRL)
    learn(method, stream[:1])
    for value in method.parameters():
        value.data.zero_()
    method.params["output.bias"].data.copy_(tensor([math.log(3), 0.0]))  # sigmoid: 3/4 and 1/2
    data = method.training_data(stream[1])
    method.begin_task(stream[1], data)
    batch = Batch.pick(data, tensor([0, 119]))  # one of the memory's, class 0, and the last of the new, class 3
    assert batch.y.tolist() == [0, 3]
    method.params["output.bias"].data.zero_()  # every output gives 1/2 now: all terms are log 2
    loss = method.loss(method.forward(batch), batch)
    assert loss.item() == pytest.approx(4 * math.log(2))
    method.params["output.bias"].data.copy_(tensor([0.0, math.log(3), math.log(3), math.log(3)]))
    # Outputs 1/2, 3/4, 3/4, 3/4; targets (3/4, 1/2, 0, 0) for the old sample and (3/4, 1/2, 0, 1) for the new one.
    right, wrong, half = -math.log(3 / 4), -math.log(1 / 4), (-math.log(3 / 4) - math.log(1 / 4)) / 2
    expected = (2 * (math.log(2) + half) + wrong + wrong + wrong + right) / 2
    assert method.loss(method.forward(batch), batch).item() == pytest.approx(expected)


def test_temperature_makes_old_outputs_less_certain() -> None:
    method, stream = make(ICaRL, {"temperature": 2.0}), small_stream()
    assert isinstance(method, ICaRL)
    learn(method, stream[:1])
    scores = method.blueprint.forward(method.params, stream[1].train.x)
    method.begin_task(stream[1], stream[1].train)
    assert method.old_outputs is not None
    torch.testing.assert_close(method.old_outputs, (scores / 2).sigmoid())


def test_inputs_that_vary_are_shown_to_the_old_network_each_time() -> None:
    stream, losses = small_stream(), []
    for fixed in (True, False):
        method = make(ICaRL)
        assert isinstance(method, ICaRL)
        learn(method, stream[:1])
        data = stream[1].train
        method.begin_task(stream[1], type(data)(data.x, data.y, augmented=not fixed))
        assert (method.old_outputs is not None) == fixed
        batch = Batch.pick(data, torch.arange(7))
        losses.append(method.loss(method.forward(batch), batch).item())
    assert losses[0] == pytest.approx(losses[1])


def test_the_nearest_mean_of_exemplars_wins() -> None:
    method, stream = make(ICaRL, {"memory_size": 12}), small_stream()
    assert isinstance(method, ICaRL)
    learn(method, stream)
    kept, x = method.memory.samples(), stream[1].test.x
    means = torch.stack([method.features(kept.x[kept.y == number]).mean(0) for number in range(6)])
    torch.testing.assert_close(method.means, F.normalize(means))
    torch.testing.assert_close(method.features(x).norm(dim=1), torch.ones(len(x)))
    distance = (method.features(x)[:, None] - F.normalize(means)).norm(dim=2)
    torch.testing.assert_close(method.predict(x), -distance, atol=1e-4, rtol=1e-4)
    assert min(accuracy(method, stream)) > 0.8


def test_features_are_what_enters_the_classifier() -> None:
    method, stream = make(ICaRL), small_stream()
    assert isinstance(method, ICaRL)
    learn(method, stream[:1])
    x, values = stream[0].test.x, method.params
    h = torch.relu(x @ values["input-hidden1"].T + values["hidden1.bias"])
    h = torch.relu(h @ values["hidden1-hidden2"].T + values["hidden2.bias"])
    torch.testing.assert_close(method.features(x), F.normalize(h.detach()))


def test_a_temperature_of_nothing_is_refused() -> None:
    with pytest.raises(SettingsError, match="temperature: 0"):
        make(ICaRL, {"temperature": 0.0})
    with pytest.raises(SettingsError, match="memory_size: 0"):
        make(ICaRL, {"memory_size": 0})
