import pytest
import torch
from torch import Tensor

from spacenet.errors import SettingsError
from spacenet.methods.base import Batch
from spacenet.methods.mas import MAS
from spacenet.methods.shared.quadratic_penalty import QuadraticPenalty
from tests.methods.support import accuracy, learn, make, small_stream


def mas(**settings: object) -> MAS:
    method = make(MAS, settings)
    assert isinstance(method, MAS)
    return method


def test_importance_is_the_mean_size_of_the_gradient_of_the_squared_norm() -> None:
    """‖s‖² has the gradient 2 s for the bias and 2 s h for a weight from h, sample by sample."""
    method, task = mas(), small_stream()[0]
    method.add_outputs(2)
    kept: list[Tensor] = []
    with torch.no_grad():
        scores = method.blueprint.forward(method.params, task.train.x, lambda name, h: kept.append(h))
    importance = method.sensitivity(task)
    torch.testing.assert_close(importance["output.bias"], (2 * scores).abs().mean(0))
    by_hand = (2 * scores.unsqueeze(2) * kept[-1].unsqueeze(1)).abs().mean(0)
    torch.testing.assert_close(importance["hidden2-output"], by_hand)


def test_importance_adds_up_over_tasks_and_its_anchor_is_the_last_solution() -> None:
    method, stream = mas(), small_stream()
    learn(method, stream[:1])
    first = method.importance["output.bias"].clone()
    solution = method.params["output.bias"].detach().clone()
    task = stream[1]
    method.begin_task(task, task.train)
    assert method.anchor["output.bias"][:2].tolist() == solution.tolist()
    assert method.importance["output.bias"].tolist() == [*first.tolist(), 0.0, 0.0]
    second = method.sensitivity(task)["output.bias"]
    method.end_task(task)
    torch.testing.assert_close(method.importance["output.bias"], torch.cat([first, torch.zeros(2)]) + second)


def test_the_loss_grows_by_what_important_weights_moved() -> None:
    method, stream = mas(strength=0.5), small_stream()
    learn(method, stream[:1])
    method.begin_task(stream[1], stream[1].train)
    batch = Batch.pick(stream[1].train, torch.arange(5))
    method.params["output.bias"].data += 2.0
    output = method.forward(batch)
    plain = super(QuadraticPenalty, method).loss(output, batch)
    cost = 0.5 * 4 * method.importance["output.bias"].sum()
    torch.testing.assert_close(method.loss(output, batch) - plain, cost)


def test_it_learns_the_last_task_and_keeps_only_the_importance() -> None:
    method, stream = mas(strength=0.01), small_stream()
    learn(method, stream)
    assert accuracy(method, stream)[-1] > 0.9
    assert method.extra_bytes() == sum(value.nbytes for value in method.params.values())


def test_settings_are_checked() -> None:
    with pytest.raises(SettingsError, match="strength"):
        MAS.Settings(strength=-1.0)
    with pytest.raises(SettingsError, match="importance_samples"):
        MAS.Settings(importance_samples=0)
