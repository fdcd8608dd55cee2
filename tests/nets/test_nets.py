"""Networks by name."""

import pickle
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

from spacenet.config.model import NetConfig
from spacenet.errors import SettingsError
from spacenet.nets import build_net, net_name, register_net
from spacenet.registry import NETS
from spacenet.space.blueprint import Blueprint, Hook, Layer, Link, Params
from spacenet.space.operations import connect


@pytest.mark.parametrize(
    ("net", "weights"),
    [
        ("wrn-28-10", 36_454_832),
        ("resnet-18", 11_159_232),
        ("small-cnn", 3 * 32 * 9 + 32 * 32 * 9 + 32 * 64 * 9 + 64 * 64 * 9 + 64 * 64 * 512),
        ("mlp", 3 * 32 * 32 * 400 + 400 * 400),
    ],
)
def test_networks_have_the_size_of_their_papers(net: str, weights: int) -> None:
    blueprint = build_net(NetConfig(net), (3, 32, 32))
    size = {layer.name: layer.size for layer in blueprint.layers}
    links = (size[link.source] * size[link.target] * torch.Size(link.kernel).numel() for link in blueprint.links)
    assert sum(links) == weights
    assert [link.target for link in blueprint.classifiers] == ["output"]


def test_widths_of_a_wide_residual_network_can_be_given() -> None:
    blueprint = build_net(NetConfig("wrn-16-4", hidden=(8, 24, 40, 56)), (3, 32, 32))
    assert [layer.size for layer in blueprint.layers if layer.group or layer.name == "stem"][:2] == [8, 24]
    assert blueprint.hidden[-1].size == 56
    same = build_net(NetConfig("wrn-16-4", hidden=(16, 64, 128, 256)), (3, 32, 32))
    assert same.layers == build_net(NetConfig("wrn-16-4"), (3, 32, 32)).layers
    with pytest.raises(SettingsError, match="has 4 widths"):
        build_net(NetConfig("wrn-16-4", hidden=(8, 24)), (3, 32, 32))


def test_images_without_channels_have_one() -> None:
    assert build_net(NetConfig("small-cnn"), (28, 28)).input.size == 1
    assert build_net(NetConfig("small-cnn", hidden=(4, 6, 10)), (1, 8, 8)).layers[2].size == 6


@pytest.mark.parametrize(
    ("config", "shape", "setting", "message"),
    [
        (NetConfig("small_cnn"), (3, 8, 8), "net", "unknown net 'small_cnn', did you mean 'small-cnn'?"),
        (NetConfig("wrn-x"), (3, 8, 8), "net", "wrn-DEPTH-WIDTH"),
        (NetConfig("resnet-18", hidden=(3,)), (3, 8, 8), "hidden", "resnet-18 does not take widths of hidden layers"),
        (NetConfig("wrn-10-2", hidden=(3,)), (3, 8, 8), "hidden", "has 4 widths (stem and groups), not 1"),
        (NetConfig("small-cnn"), (784,), "net", "small-cnn takes images, samples have shape (784,)"),
        (NetConfig("wrn-10-2"), (784,), "net", "wrn-10-2 takes images, samples have shape (784,)"),
        (NetConfig("wrn-27-10"), (3, 32, 32), "net", "6 n + 4 layers"),
        (NetConfig("small-cnn", hidden=(4, 4, 4, 4, 4, 4, 9)), (3, 4, 4), "hidden", "halve images of 4×4 3 times"),
        (NetConfig("small-cnn", hidden=(9,)), (3, 4, 4), "hidden", "0 convolutions"),
    ],
)
def test_networks_that_cannot_be_built(config: NetConfig, shape: tuple[int, ...], setting: str, message: str) -> None:
    with pytest.raises(SettingsError) as info:
        build_net(config, shape)
    assert info.value.setting == setting
    assert message in info.value.message


@pytest.mark.parametrize("hidden", [(0,), (4, 0)])
def test_widths_out_of_range(hidden: tuple[int, ...]) -> None:
    with pytest.raises(SettingsError, match="hidden"):
        NetConfig(hidden=hidden)


def build_linear(input_shape: tuple[int, ...]) -> Blueprint:
    """A classifier on the inputs themselves."""
    layers = (Layer("input", input_shape[0], unit_values=()), Layer("output", 0))
    classify = Link("classify", "input", "output")

    def forward(params: Params, x: Tensor, hook: Hook | None = None) -> Tensor:
        return connect(params, classify, x, hook) + params["output.bias"]

    return Blueprint(layers, (classify,), forward)


@pytest.fixture
def _linear() -> Iterator[None]:
    register_net("linear", build_linear)
    yield
    NETS.unregister("linear")


@pytest.mark.usefixtures("_linear")
def test_a_registered_net_is_built_by_its_name() -> None:
    assert build_net(NetConfig("linear"), (7,)).input.size == 7
    with pytest.raises(SettingsError, match="does not take widths"):
        build_net(NetConfig("linear", hidden=(3,)), (7,))
    with pytest.raises(SettingsError, match="already a net"):
        register_net("mlp", build_linear)


def test_what_is_no_net() -> None:
    with pytest.raises(SettingsError, match="must be a function"):
        register_net("broken", "net")  # type: ignore[arg-type]
    register_net("broken", lambda input_shape: "net")
    with pytest.raises(SettingsError, match="built str, not a torch.nn.Module"):
        build_net(NetConfig("broken"), (7,))
    NETS.unregister("broken")


class Small(nn.Sequential): ...


def test_a_module_is_known_by_the_name_of_its_class_as_long_as_it_exists() -> None:
    module, other = (Small(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, width)) for width in (2, 5))
    assert net_name(module) == "Small"
    assert NETS["Small"]() is module
    assert net_name(other) == "Small"
    assert NETS["Small"]() is other
    del module
    assert NETS["Small"]() is other
    copied = pickle.loads(pickle.dumps(NETS["Small"]))  # as another process gets it
    assert copied()[2].out_features == 5
    del other
    assert "Small" not in NETS
