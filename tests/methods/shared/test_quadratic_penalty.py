"""Importance times squared distance, and what importance is made of."""

import math

import torch
from torch import Tensor, nn

from spacenet.methods.shared.quadratic_penalty import PathIntegral, Penalty, mean_gradients, pad_rows
from spacenet.nets.mlp import build_mlp
from tests.nets.test_convolutions import tiny_cnn


def penalty() -> Penalty:
    made = Penalty(3.0)
    made.importance = {"a": torch.tensor([1.0, 2.0])}
    made.anchor = {"a": torch.tensor([0.0, 1.0])}
    return made


def test_the_penalty_is_strength_times_importance_times_squared_distance() -> None:
    value = nn.Parameter(torch.tensor([2.0, -1.0]))
    cost = penalty()({"a": value})
    assert isinstance(cost, Tensor)
    assert float(cost.detach()) == 3 * (1 * 2**2 + 2 * 2**2)
    assert Penalty(3.0)({"a": value}) == 0.0


def test_without_the_penalty_the_gradient_is_that_of_the_data() -> None:
    held, other = nn.Parameter(torch.tensor([2.0, -1.0])), nn.Parameter(torch.tensor([1.0]))
    data = (held * torch.tensor([5.0, 7.0])).sum() + 4 * other.sum()
    (data + penalty()({"a": held})).backward()
    assert held.grad is not None
    assert held.grad.tolist() == [5 + 3 * 2 * 1 * 2, 7 - 3 * 2 * 2 * 2]
    plain = penalty().data_gradients({"a": held, "b": other})
    assert plain["a"].tolist() == [5.0, 7.0]
    assert plain["b"].tolist() == [4.0]


def test_importance_adds_up_between_0_and_the_limit() -> None:
    made = penalty()
    made.add({"a": torch.tensor([-4.0, 1.0]), "b": torch.tensor([-1.0, 9.0])}, limit=2.5)
    assert made.importance["a"].tolist() == [0.0, 2.5]
    assert made.importance["b"].tolist() == [0.0, 2.5]
    made.add({"a": torch.tensor([1.0, 1.0])})
    assert made.importance["a"].tolist() == [1.0, 3.5]


def test_new_outputs_have_no_importance_and_old_ones_are_held_where_they_are() -> None:
    made = penalty()
    made.set_anchor({"a": torch.tensor([5.0, 6.0, 7.0]), "b": torch.tensor([1.0])})
    assert made.importance["a"].tolist() == [1.0, 2.0, 0.0]
    assert made.anchor["a"].tolist() == [5.0, 6.0, 7.0]
    assert set(made.anchor) == {"a"}
    assert pad_rows(torch.ones(1, 3), torch.empty(2, 3)).tolist() == [[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]]


def test_the_path_integral_adds_up_gradient_times_step() -> None:
    value, path = nn.Parameter(torch.tensor([1.0, 1.0])), PathIntegral()
    path.begin({"a": value})

    def move(by: tuple[float, float]) -> None:
        with torch.no_grad():
            value.add_(torch.tensor(by))

    path.record({"a": value}, {"a": torch.tensor([2.0, -1.0])}, lambda: move((-0.5, 0.25)))
    path.record({"a": value}, {"a": torch.tensor([4.0, 3.0])}, lambda: move((-0.25, 0.25)))
    assert path.decrease["a"].tolist() == [2 * 0.5 + 4 * 0.25, 1 * 0.25 - 3 * 0.25]
    importance = path.importance({"a": value}, damping=0.1)["a"]
    torch.testing.assert_close(importance, torch.tensor([2.0 / (0.75**2 + 0.1), -0.5 / (0.5**2 + 0.1)]))


def test_gradients_are_measured_sample_by_sample() -> None:
    """One output s = w x: the gradient of s² is 2 w x · x. Averaged before its size is taken, it would be smaller."""
    values = {"input-output": nn.Parameter(torch.tensor([[0.5]])), "output.bias": nn.Parameter(torch.zeros(1))}
    x = torch.tensor([[2.0], [-4.0]])
    mean = mean_gradients(build_mlp((1,), ()), values, x, torch.zeros(2), lambda s, _: s.square().sum(), torch.abs)
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
        return mean_gradients(net, values, x[rows], torch.zeros(30)[rows], lambda s, _: s.square().sum(), torch.abs)

    whole, first, rest = measured(slice(0, 30)), measured(slice(0, 10)), measured(slice(10, 30))
    assert "conv1.norm.scale" in whole
    assert "conv1.norm.mean" not in whole
    for name, mean in whole.items():
        assert bool(mean.any())
        torch.testing.assert_close(mean, (first[name] + 2 * rest[name]) / 3)
    assert math.isclose(float(values["conv1.norm.mean"].sum()), 0.0)
