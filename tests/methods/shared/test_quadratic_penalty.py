"""Importance times squared distance, and what importance is made of."""

import math

import torch
from torch import Tensor, nn

from spacenet.methods.mas import MAS
from spacenet.methods.shared.quadratic_penalty import pad_rows
from spacenet.methods.si import SI
from spacenet.nets.mlp import build_mlp
from spacenet.space.blueprint import Blueprint
from spacenet.utils.optimizers import SGD
from tests.methods.support import learn, make, small_stream
from tests.nets.test_convolutions import tiny_cnn


def penalized(*values: float) -> SI:
    """A method of one parameter, which is held."""
    method = make(SI, {"strength": 3.0})
    assert isinstance(method, SI)
    method.params = {"a": nn.Parameter(torch.tensor(values))}
    method.importance = {"a": torch.tensor([1.0, 2.0])}
    method.anchor = {"a": torch.tensor([0.0, 1.0])}
    return method


def test_the_penalty_is_strength_times_importance_times_squared_distance() -> None:
    method = penalized(2.0, -1.0)
    cost = method.penalty()
    assert isinstance(cost, Tensor)
    assert float(cost.detach()) == 3 * (1 * 2**2 + 2 * 2**2)
    method.importance = {}
    assert method.penalty() == 0.0


def test_without_the_penalty_the_gradient_is_that_of_the_data() -> None:
    method = penalized(2.0, -1.0)
    held, other = method.params["a"], nn.Parameter(torch.tensor([1.0]))
    method.params["b"] = other
    ((held * torch.tensor([5.0, 7.0])).sum() + 4 * other.sum() + method.penalty()).backward()
    assert held.grad is not None
    assert held.grad.tolist() == [5 + 3 * 2 * 1 * 2, 7 - 3 * 2 * 2 * 2]
    plain = method.data_gradients()
    assert plain["a"].tolist() == [5.0, 7.0]
    assert plain["b"].tolist() == [4.0]


def test_importance_adds_up_between_0_and_the_limit() -> None:
    method = penalized(0.0, 0.0)
    method.importance_limit = 2.5
    method.add_importance({"a": torch.tensor([-4.0, 1.0]), "b": torch.tensor([-1.0, 9.0])})
    assert method.importance["a"].tolist() == [0.0, 2.5]
    assert method.importance["b"].tolist() == [0.0, 2.5]
    method.importance_limit = None
    method.add_importance({"a": torch.tensor([1.0, 1.0])})
    assert method.importance["a"].tolist() == [1.0, 3.5]


def test_new_outputs_have_no_importance_and_old_ones_are_held_where_they_are() -> None:
    method, stream = make(MAS), small_stream()
    assert isinstance(method, MAS)
    learn(method, stream[:1])
    importance, held = method.importance["output.bias"].clone(), method.params["output.bias"].detach().clone()
    method.begin_task(stream[1], stream[1].train)
    assert method.importance["output.bias"].tolist() == [*importance.tolist(), 0.0, 0.0]
    assert method.anchor["output.bias"].tolist() == [*held.tolist(), 0.0, 0.0]
    assert method.anchor.keys() == method.importance.keys()
    assert pad_rows(torch.ones(1, 3), torch.empty(2, 3)).tolist() == [[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]]


def test_the_path_integral_adds_up_gradient_times_step() -> None:
    method = penalized(1.0, 1.0)
    value, optimizer = method.params["a"], SGD([method.params["a"]], 0.25)
    method.importance, method.anchor = {}, {"a": value.detach().clone()}
    method.decrease = {"a": torch.zeros(2)}
    for gradient in ([2.0, -1.0], [1.0, -1.0]):
        value.grad = torch.tensor(gradient)
        method.step(optimizer)
    assert method.decrease["a"].tolist() == [2 * 0.5 + 1 * 0.25, 1 * 0.25 + 1 * 0.25]
    importance = method.task_importance()["a"]
    torch.testing.assert_close(importance, torch.tensor([1.25 / (0.75**2 + 0.1), 0.5 / (0.5**2 + 0.1)]))


def mean_squared_scores(net: Blueprint, values: dict[str, nn.Parameter], x: Tensor) -> dict[str, Tensor]:
    """The mean size of the gradient of a sample's squared scores."""
    method = make(SI)
    assert isinstance(method, SI)
    method.blueprint, method.params = net, values
    return method.mean_gradients(x, torch.zeros(len(x)), lambda s, _: s.square().sum(), torch.abs)


def test_gradients_are_measured_sample_by_sample() -> None:
    """One output s = w x: the gradient of s² is 2 w x · x. Averaged before its size is taken, it would be smaller."""
    values = {"input-output": nn.Parameter(torch.tensor([[0.5]])), "output.bias": nn.Parameter(torch.zeros(1))}
    x = torch.tensor([[2.0], [-4.0]])
    mean = mean_squared_scores(build_mlp((1,), ()), values, x)
    assert mean["input-output"].tolist() == [[(2 * 0.5 * 2 * 2 + 2 * 0.5 * 4 * 4) / 2]]
    assert mean["output.bias"].tolist() == [(2 * 0.5 * 2 + 2 * 0.5 * 4) / 2]


def test_with_batch_norm_a_samples_gradient_does_not_depend_on_the_others() -> None:
    net = tiny_cnn()
    rng = torch.Generator().manual_seed(0)
    size = {layer.name: layer.size or 2 for layer in net.layers}
    values = {
        link.name: nn.Parameter(link.initial((size[link.target], size[link.source]), 9, 9, rng)) for link in net.links
    }
    for layer in net.layers:
        for key, value in layer.keys().items():
            values[key] = nn.Parameter(torch.full((size[layer.name],), value.initial), value.trained)
    x = torch.randn(30, 3, 8, 8, generator=rng)

    def measured(rows: slice) -> dict[str, Tensor]:
        return mean_squared_scores(net, values, x[rows])

    whole, first, rest = measured(slice(0, 30)), measured(slice(0, 10)), measured(slice(10, 30))
    assert "conv1.norm1.scale" in whole
    assert "conv1.norm1.mean" not in whole
    for name, mean in whole.items():
        assert bool(mean.any())
        torch.testing.assert_close(mean, (first[name] + 2 * rest[name]) / 3)
    assert math.isclose(float(values["conv1.norm1.mean"].sum()), 0.0)
