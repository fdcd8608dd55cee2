"""From a module to a graph and a blueprint, and what is refused."""

import copy
import logging
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spacenet.errors import SettingsError
from spacenet.nets.graph import Graph
from spacenet.nets.modules import build_from_text
from spacenet.nets.populations import build_blueprint
from spacenet.nets.proof import prove
from spacenet.nets.trace import trace
from spacenet.space.blueprint import Blueprint, Init
from tests.nets.foreign import IMAGE_NETS, randomize, signal_net

IMAGE, SIGNAL = (3, 8, 8), (3, 16)


def traced(module: nn.Module, shape: tuple[int, ...]) -> Blueprint:
    graph = trace(module, shape)
    prove(module, graph, shape)
    assert Graph.from_text(graph.to_text()) == graph
    return build_blueprint(graph)


@pytest.mark.parametrize("name", IMAGE_NETS)
def test_networks_of_other_packages_are_proven_equal(name: str) -> None:
    torch.manual_seed(0)
    module = randomize(IMAGE_NETS[name]())
    state = copy.deepcopy(module.state_dict())
    traced(module, IMAGE)
    assert all(torch.equal(tensor, state[key]) for key, tensor in module.state_dict().items())


def test_signals() -> None:
    blueprint = traced(randomize(signal_net()), SIGNAL)
    assert [link.stride for link in blueprint.links] == [(1,), (1,), ()]


def test_efficientnet_of_another_package(caplog: pytest.LogCaptureFixture) -> None:
    efficientnet = pytest.importorskip("efficientnet_lite_pytorch", reason="needs the package")
    torch.manual_seed(0)
    module = efficientnet.EfficientNet.from_name("efficientnet-lite0", num_classes=4)
    with caplog.at_level(logging.WARNING):
        blueprint = traced(module, (3, 32, 32))
    assert "what the network does in training alone is left out, but for its dropout" in caplog.text  # stochastic depth
    assert blueprint.drops
    assert sum(len(value.shape) == 2 for layer in blueprint.hidden for value in layer.unit_values) == 16  # depthwise


class _Deep(nn.Module):
    """Layers with batch norm; in training, samples are dropped at random, as stochastic depth does."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last, self.slope = nn.Conv2d(3, 6, 3), nn.Linear(6, 4), 0.0
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Conv2d(6, 6, 3, padding=1, bias=False), nn.BatchNorm2d(6), nn.ReLU()) for _ in range(15)
        )

    def forward(self, x: Tensor) -> Tensor:
        h = F.leaky_relu(self.first(x), self.slope)
        for block in self.blocks:
            h = block(h)
        if self.training:
            h = h * (torch.rand(len(h), 1, 1, 1) > 0.1)
        return self.last(h.mean((2, 3)))  # type: ignore[no-any-return]


def test_a_difference_in_a_deep_network_shows() -> None:
    torch.manual_seed(0)
    module = _Deep().eval()
    with torch.no_grad():  # with batch norm's initial statistics, the answers to all samples are nearly the same
        assert float(module(torch.randn(6, *IMAGE)).std(0).max()) < 1e-5
    graph = trace(module, IMAGE)
    prove(module, graph, IMAGE)
    module.slope = 0.1  # another network than the one that was traced
    with pytest.raises(SettingsError, match="it computes something else than the module"):
        prove(module, graph, IMAGE)


def test_populations_of_a_residual_network() -> None:
    blueprint = build_blueprint(trace(IMAGE_NETS["resnet-18"](), IMAGE))
    assert {layer.name: layer.group for layer in blueprint.hidden[:3]} == {
        "layer1": "layer1",
        "layer1.0.conv1": "layer1",
        "layer1.1.conv1": "layer1",
    }
    sources = {link.source for link in blueprint.links if link.target == "layer2"}
    assert sources == {"layer1", "layer2.0.conv1", "layer2.1.conv1"}


def test_a_concatenation_has_the_units_of_several_layers() -> None:
    blueprint = build_blueprint(trace(IMAGE_NETS["densenet"](), IMAGE))
    assert [link.source for link in blueprint.classifiers] == ["conv1", "block2.0.conv2", "block2.1.conv2"]


def test_groups_are_units() -> None:
    blueprint = build_blueprint(trace(IMAGE_NETS["grouped"](), IMAGE))
    stem = next(layer for layer in blueprint.layers if layer.name == "stem")
    assert stem.size == 6  # groups of two channels, which the grouped convolution makes four of
    assert {value.name: value.shape for value in stem.unit_values}["grouped.weight"] == (4, 2, 3, 3)


def test_initial_weights_are_distributed_as_those_of_the_module() -> None:
    last = nn.Linear(50, 9)
    nn.init.normal_(last.weight, std=0.3)
    module = nn.Sequential(nn.Linear(64, 50), nn.ReLU(), last)
    first, second = (node.init for node in trace(module, (64,)).nodes if node.op == "linear")
    assert first == Init("uniform", 1 / 8)
    assert second.kind == "normal"
    assert second.size == pytest.approx(0.3, rel=0.15)
    assert {node.init for node in trace(module, (64,), initialization=False).nodes} == {Init()}


class _Net(nn.Module):
    """A network whose middle is given."""

    def __init__(self, middle: Callable[["_Net", Tensor], Tensor], width: int = 6) -> None:
        super().__init__()
        self.first, self.again, self.last = nn.Linear(8, 6), nn.Linear(6, 6), nn.Linear(width, 3)
        self.norm, self.middle = nn.LayerNorm(6), middle

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.middle(self, F.relu(self.first(x))))  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        (_Net(lambda net, h: net.norm(h)), "LayerNorm at norm: native_layer_norm .* use batch norm"),
        (_Net(lambda net, h: net.again(net.again(h))), "Linear at again: again.weight is used twice"),
        (_Net(lambda net, h: h[:, :3], 3), "slice .* units of different layers"),
        (_Net(lambda net, h: h + h.mean(1, keepdim=True)), "mean .*over channels"),
        (_Net(lambda net, h: h * h.sum()), "sum"),
        (_Net(lambda net, h: h if h.sum() > 0 else -h), "sum|depend on the data"),
        (_Net(lambda net, h: h.softmax(1)), "_softmax"),
        (_Net(lambda net, h: h @ h.t() @ h), "a product of matrices|t is not possible"),
        (_Net(lambda net, h: h / len(h)), "depends on the number of samples"),
        (_Net(lambda net, h: F.linear(h, net.again.weight * 2)), "a product of matrices|not a parameter"),
        (nn.Sequential(nn.Linear(8, 8), nn.ReLU()), "does not end with a Linear layer"),
        (nn.Sequential(nn.Linear(9, 8), nn.Linear(8, 2)), r"cannot compute samples of the shape \(8,\)"),
    ],
)
def test_what_tasks_cannot_share_is_refused_with_a_sentence(module: nn.Module, reason: str) -> None:
    with pytest.raises(SettingsError, match=reason) as raised:
        traced(module, (8,))
    assert raised.value.setting == "net"


def test_attention_is_refused() -> None:
    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention, self.last = nn.MultiheadAttention(8, 2, batch_first=True), nn.Linear(8, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.last(self.attention(x, x, x)[0].mean(1))  # type: ignore[no-any-return]

    with pytest.raises(SettingsError, match="MultiheadAttention at attention: .* attention is not possible"):
        traced(Attention(), (5, 8))


def test_the_input_cannot_be_added_to_a_layer() -> None:
    class Skip(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(8, 8), nn.Linear(8, 2)

        def forward(self, x: Tensor) -> Tensor:
            return self.last(x + self.first(x))  # type: ignore[no-any-return]

    with pytest.raises(SettingsError, match="the input itself is added to"):
        traced(Skip(), (8,))


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "{}",
        "[1]",
        '[{"op":"input","args":[8]}]',
        '[{"op":"input","args":[8]},{"op":"linear","inputs":[5],"name":"a","out":3}]',
        '[{"op":"input","args":[8]},{"op":"system","inputs":[0]},{"op":"linear","inputs":[1],"name":"a","out":3}]',
        '[{"op":"input","args":[8]},{"op":"linear","inputs":[0],"name":"a","out":-3},{"op":"linear","inputs":[1]}]',
        '[{"op":"input","args":["a"]},{"op":"linear","inputs":[0],"name":"a","out":3}]',
        '[{"op":"input"},{"op":"linear","inputs":[0],"name":"a","out":3}]',
        '[{"op":"input","args":[8]},{"op":"batch_norm","inputs":[0],"name":"n"},{"op":"linear","inputs":[1],"out":3}]',
    ],
)
def test_a_graph_that_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(SettingsError):
        build_from_text(text)
