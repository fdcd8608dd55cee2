import pytest
import torch

from spacenet.errors import SettingsError
from spacenet.methods.base import Batch
from spacenet.methods.shared.quadratic_penalty import QuadraticPenalty
from spacenet.methods.si import SI
from spacenet.utils.optimizers import SGD
from tests.methods.support import accuracy, learn, make, small_stream


def si(**settings: object) -> SI:
    method = make(SI, settings)
    assert isinstance(method, SI)
    return method


def test_importance_is_the_fall_of_the_loss_over_the_squared_way() -> None:
    """One step of plain gradient descent: the way is −rate × gradient, the fall rate × gradient²."""
    method, task = si(damping=0.5), small_stream()[0]
    method.begin_task(task, task.train)
    batch = Batch.pick(task.train, torch.arange(10))
    method.loss(method.forward(batch), batch).backward()
    gradient = method.params["output.bias"].grad
    assert gradient is not None
    gradient = gradient.clone()
    method.step(SGD(method.parameters(), 0.1))
    method.end_task(task)
    by_hand = 0.1 * gradient.square() / ((0.1 * gradient).square() + 0.5)
    torch.testing.assert_close(method.importance["output.bias"], by_hand)


def test_the_path_integral_takes_the_gradient_of_the_datas_loss_alone() -> None:
    method, stream = si(strength=100.0), small_stream()
    learn(method, stream[:1])
    method.begin_task(stream[1], stream[1].train)
    method.importance["hidden1.bias"].fill_(1.0)
    method.params["hidden1.bias"].data += 1.0
    batch = Batch.pick(stream[1].train, torch.arange(10))
    output = method.forward(batch)
    value = method.params["hidden1.bias"]
    (of_data,) = torch.autograd.grad(super(QuadraticPenalty, method).loss(output, batch), value, retain_graph=True)
    value.grad = None
    method.loss(output, batch).backward()
    before = value.detach().clone()
    method.step(SGD(method.parameters(), 0.1))
    step = value.detach() - before
    assert float(step.abs().min()) > 10  # the penalty drives the step, 0.1 × 2 × 100 × 1
    torch.testing.assert_close(method.decrease["hidden1.bias"], -of_data * step, rtol=1e-4, atol=1e-3)


def test_all_falls_together_are_about_the_fall_of_the_loss() -> None:
    method, task = si(), small_stream()[0]
    method.begin_task(task, task.train)
    batch = Batch.pick(task.train, torch.arange(len(task.train)))
    first = float(method.loss(method.forward(batch), batch).detach())
    optimizer = SGD(method.parameters(), 0.005)
    for _ in range(40):
        optimizer.zero_grad()
        method.loss(method.forward(batch), batch).backward()
        method.step(optimizer)
    last = float(method.loss(method.forward(batch), batch).detach())
    assert first - last > 0.1
    assert sum(float(fall.sum()) for fall in method.decrease.values()) == pytest.approx(first - last, rel=0.05)


def test_only_the_importance_is_kept_between_tasks() -> None:
    method, stream = si(), small_stream()
    learn(method, stream)
    assert accuracy(method, stream)[-1] > 0.9
    assert method.extra_bytes() == sum(value.nbytes for value in method.params.values())
    assert all(float(tensor.min()) >= 0 for tensor in method.extra_state().values())
    assert float(method.importance["input-hidden1"].max()) > 0


def test_settings_are_checked() -> None:
    with pytest.raises(SettingsError, match="strength"):
        SI.Settings(strength=-1.0)
    with pytest.raises(SettingsError, match="damping"):
        SI.Settings(damping=0.0)
