import pytest
import torch

from spacenet.config.training import TrainingConfig
from spacenet.errors import SettingsError
from spacenet.methods.ar1 import AR1
from spacenet.methods.base import Batch
from spacenet.methods.shared.quadratic_penalty import QuadraticPenalty
from spacenet.utils.optimizers import SGD
from tests.methods.support import accuracy, learn, make, small_stream

ROUGH = TrainingConfig(epochs=4, batch_size=10, learning_rate=0.05, momentum=0.9, weight_decay=0.1)


def ar1(**settings: object) -> AR1:
    method = make(AR1, settings)
    assert isinstance(method, AR1)
    return method


def test_old_outputs_stay_and_the_layers_below_go_on_learning() -> None:
    one, all_three = ar1(), ar1()
    stream = small_stream()
    learn(one, stream[:1], ROUGH)
    learn(all_three, stream, ROUGH)
    first, last = one.network_state(), all_three.network_state()
    for name in ("params/hidden2-output", "params/output.bias"):
        assert torch.equal(last[name][:2], first[name]), name
        assert abs(float(last[name][4:].mean())) < 1e-6
    assert not torch.equal(last["params/input-hidden1"], first["params/input-hidden1"])


def test_importance_is_measured_below_the_outputs_and_limited() -> None:
    method, stream = ar1(importance_limit=0.004), small_stream()
    learn(method, stream[:2])
    below = {"input-hidden1", "hidden1.bias", "hidden1-hidden2", "hidden2.bias"}
    assert set(method.importance) == below
    largest = max(float(tensor.max()) for tensor in method.importance.values())
    assert largest == pytest.approx(0.004)
    assert min(float(tensor.min()) for tensor in method.importance.values()) >= 0
    assert method.extra_bytes() == sum(method.params[name].nbytes for name in below)


def test_importance_is_the_fall_of_the_loss_over_the_squared_way() -> None:
    method, task = ar1(damping=0.5, importance_limit=100.0), small_stream()[0]
    method.begin_task(task, task.train)
    batch = Batch.pick(task.train, torch.arange(10))
    with torch.no_grad():
        method.params["hidden2-output"].normal_(generator=torch.Generator().manual_seed(0))
    method.loss(method.forward(batch), batch).backward()
    gradient = method.params["hidden1.bias"].grad
    assert gradient is not None
    gradient = gradient.clone()
    assert bool(gradient.any())
    method.step(SGD(method.parameters(), 0.1))
    method.end_task(task)
    by_hand = 0.1 * gradient.square() / ((0.1 * gradient).square() + 0.5)
    torch.testing.assert_close(method.importance["hidden1.bias"], by_hand)


def test_the_loss_grows_by_what_important_weights_moved() -> None:
    method, stream = ar1(strength=7.0), small_stream()
    learn(method, stream[:1])
    method.begin_task(stream[1], stream[1].train)
    batch = Batch.pick(stream[1].train, torch.arange(5))
    method.params["hidden1.bias"].data += 3.0
    output = method.forward(batch)
    plain = super(QuadraticPenalty, method).loss(output, batch)
    cost = 7 * 9 * method.importance["hidden1.bias"].sum()
    assert float(cost) > 0.1
    torch.testing.assert_close(method.loss(output, batch) - plain, cost)


def test_it_remembers() -> None:
    method, stream = ar1(), small_stream()
    learn(method, stream)
    assert sum(accuracy(method, stream)) / 3 > 0.5


def test_settings_are_checked() -> None:
    with pytest.raises(SettingsError, match="strength"):
        AR1.Settings(strength=-1.0)
    with pytest.raises(SettingsError, match="damping"):
        AR1.Settings(damping=0.0)
    with pytest.raises(SettingsError, match="importance_limit"):
        AR1.Settings(importance_limit=0.0)
