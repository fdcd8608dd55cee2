import pytest
import torch
from torch import nn
from torch.nn import functional as F

from spacenet.errors import SettingsError
from spacenet.methods.base import Batch
from spacenet.methods.ewc import EWC
from spacenet.utils.optimizers import SGD
from tests.methods.support import accuracy, learn, make, small_stream


def ewc(**settings: object) -> EWC:
    method = make(EWC, settings)
    assert isinstance(method, EWC)
    return method


def test_the_fisher_information_is_that_of_a_hand_computed_model() -> None:
    """Scores 0 and 0, so p = ½ for both: whatever label is drawn, the gradient of its bias is ∓½."""
    method, task = ewc(), small_stream()[0]
    method.add_outputs(2)
    for name, value in method.params.items():
        if name.startswith("output") or name.endswith("output"):
            value.data.zero_()
    fisher = method.fisher(task)
    assert fisher["output.bias"].tolist() == [0.25, 0.25]
    with torch.no_grad():
        kept: list[torch.Tensor] = []
        method.blueprint.forward(method.params, task.train.x, lambda name, h: kept.append(h))
    torch.testing.assert_close(fisher["hidden2-output"], 0.25 * kept[-1].square().mean(0).expand(2, -1))
    assert not fisher["hidden1.bias"].any()


def test_labels_are_drawn_from_the_model_not_taken_from_the_data() -> None:
    method, task = ewc(), small_stream()[0]
    method.add_outputs(2)
    method.params["output.bias"].data.copy_(torch.tensor([40.0, -40.0]))
    assert float(method.fisher(task)["output.bias"].max()) < 1e-6


def test_the_penalties_of_two_tasks_are_one_quadratic() -> None:
    method = ewc(strength=3.0)
    optima, fishers = ([2.0, -1.0], [5.0, 1.0]), ([1.0, 0.5], [3.0, 0.0])
    for optimum, fisher in zip(optima, fishers, strict=True):
        method.params = {"a": nn.Parameter(torch.tensor(optimum))}
        method.consolidate({"a": torch.tensor(fisher)})
    here = nn.Parameter(torch.tensor([0.5, 3.0]))
    method.params = {"a": here}
    cost = method.penalty()
    assert isinstance(cost, torch.Tensor)
    cost.backward()
    by_hand = [3 * (1 * (0.5 - 2) + 3 * (0.5 - 5)), 3 * (0.5 * (3 + 1) + 0)]
    assert here.grad is not None
    assert here.grad.tolist() == pytest.approx(by_hand)
    assert method.importance["a"].tolist() == [4.0, 0.5]


def test_the_loss_grows_by_half_lambda_times_the_distance_and_not_for_new_outputs() -> None:
    method, stream = ewc(strength=8.0), small_stream()
    learn(method, stream[:1])
    method.begin_task(stream[1], stream[1].train)
    batch = Batch.pick(stream[1].train, torch.arange(5))
    method.importance["output.bias"][:2] = 1.0
    method.params["output.bias"].data += torch.tensor([1.0, 2.0, 3.0, 4.0])
    output = method.forward(batch)
    plain = F.cross_entropy(output, batch.y)
    torch.testing.assert_close(method.loss(output, batch) - plain, torch.tensor(8 / 2 * (1.0 + 4.0)))


def test_what_is_important_moves_less() -> None:
    ways = []
    for strength in (0.0, 1000.0):
        method, stream = ewc(strength=strength), small_stream()
        learn(method, stream[:1])
        before = method.params["input-hidden1"].detach().clone()
        method.begin_task(stream[1], stream[1].train)
        optimizer = SGD(method.parameters(), 0.001)
        for _ in range(20):
            batch = Batch.pick(stream[1].train, torch.arange(60))
            optimizer.zero_grad()
            method.loss(method.forward(batch), batch).backward()
            method.step(optimizer)
        importance = method.importance["input-hidden1"]
        moved = (method.params["input-hidden1"].detach() - before).abs()
        ways.append(float((importance * moved).sum()))
    assert ways[1] < 0.9 * ways[0]


def test_it_learns_each_task_and_names_only_the_last_ones_classes() -> None:
    method, stream = ewc(strength=1.0), small_stream()
    learn(method, stream)
    assert accuracy(method, stream)[-1] > 0.9
    assert method.extra_bytes() == 2 * sum(value.nbytes for value in method.params.values())


def test_settings_are_checked() -> None:
    with pytest.raises(SettingsError, match="strength"):
        EWC.Settings(strength=-1.0)
    with pytest.raises(SettingsError, match="fisher_samples"):
        EWC.Settings(fisher_samples=0)
