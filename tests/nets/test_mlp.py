import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Generator

from spacenet.config.model import NetConfig
from spacenet.nets import build_net
from spacenet.nets.mlp import build_mlp
from spacenet.space.blueprint import PRECOMPUTED


def test_it_describes_layers_and_links_in_order() -> None:
    net = build_mlp((5,), (7, 3))
    sizes = [(layer.name, layer.size) for layer in net.layers]
    assert sizes == [("input", 5), ("hidden1", 7), ("hidden2", 3), ("output", 0)]
    assert [(link.source, link.target) for link in net.links] == [
        ("input", "hidden1"),
        ("hidden1", "hidden2"),
        ("hidden2", "output"),
    ]
    assert [link.name for link in net.classifiers] == ["hidden2-output"]


def test_forward_is_relu_between_layers_and_none_at_the_end() -> None:
    net = build_mlp((2,), (2,))
    params = {
        "input-hidden1": torch.tensor([[1.0, 0.0], [0.0, 1.0]]),
        "hidden1.bias": torch.tensor([0.0, -3.0]),
        "hidden1-output": torch.tensor([[-1.0, 1.0]]),
        "output.bias": torch.tensor([0.5]),
    }
    assert net.forward(params, torch.tensor([[2.0, 1.0]])).tolist() == [[-1.5]]


def test_images_are_flattened() -> None:
    assert build_net(NetConfig(hidden=(4,)), (2, 3)).input.size == 6


@given(st.lists(st.integers(1, 40), max_size=3), st.integers(1, 50), st.integers(1, 5), st.booleans())
def test_the_derivative_gives_the_bits_of_autograd(
    hidden: list[int], inputs: int, outputs: int, precomputed: bool
) -> None:
    net, rng = build_mlp((inputs,), tuple(hidden)), Generator().manual_seed(inputs)
    sizes = [inputs, *hidden, outputs]
    params = {}
    for link, sources, targets in zip(net.links, sizes, sizes[1:], strict=False):
        params[link.name] = torch.randn(targets, sources, generator=rng).requires_grad_()
        params[f"{link.target}.bias"] = torch.randn(targets, generator=rng).requires_grad_()
    extra = {}
    if precomputed and hidden:
        extra[net.links[1].name + PRECOMPUTED] = torch.randn(16, sizes[2], generator=rng)
    x, gradient = torch.randn(16, inputs, generator=rng), torch.randn(16, outputs, generator=rng)
    output = net.forward({**params, **extra}, x)
    output.backward(gradient)
    assert net.derivative is not None
    plain = {**{name: param.detach() for name, param in params.items()}, **extra}
    found = {name: torch.full_like(param, 9.0) for name, param in params.items()}
    ours, activations = net.derivative.forward(plain, x.clone())
    net.derivative.backward(plain, activations, gradient, found)
    assert torch.equal(ours, output)
    for name, param in params.items():
        assert param.grad is not None
        assert torch.equal(found[name], param.grad)
