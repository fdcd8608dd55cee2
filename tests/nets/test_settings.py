import pytest
import torch

from spacenet.errors import SettingsError
from spacenet.nets import NetConfig, build_net


@pytest.mark.parametrize(
    ("net", "weights"),
    [
        ("wrn-28-10", 36_454_832),
        ("resnet-18", 11_159_232),
        ("small-cnn", 3 * 32 * 9 + 32 * 32 * 9 + 32 * 64 * 9 + 64 * 64 * 9 + 64 * 64 * 512),
    ],
)
def test_networks_have_the_size_of_their_papers(net: str, weights: int) -> None:
    blueprint = build_net(NetConfig(net=net), (3, 32, 32))
    size = {layer.name: layer.size for layer in blueprint.layers}
    links = (size[link.source] * size[link.target] * torch.Size(link.kernel).numel() for link in blueprint.links)
    assert sum(links) == weights


def test_images_without_channels_have_one() -> None:
    assert build_net(NetConfig(net="small-cnn"), (28, 28)).input.size == 1
    assert build_net(NetConfig(net="small-cnn", hidden=(4, 6, 10)), (1, 8, 8)).layers[2].size == 6


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"net": "vgg"}, "there is no 'vgg'; there are mlp, small-cnn, resnet-18 or wrn-DEPTH-WIDTH"),
        ({"net": "resnet-18", "hidden": (3,)}, "hidden: the layers of resnet-18 follow from its name"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, object], match: str) -> None:
    with pytest.raises(SettingsError, match=match):
        NetConfig(**settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("settings", "shape", "match"),
    [
        (NetConfig(net="small-cnn"), (784,), "takes images"),
        (NetConfig(net="wrn-27-10"), (3, 32, 32), "6 n \\+ 4 layers"),
        (NetConfig(net="small-cnn", hidden=(4, 4, 4, 4, 4, 4, 9)), (3, 4, 4), "halve images of 4×4 3 times"),
        (NetConfig(net="small-cnn", hidden=(9,)), (3, 4, 4), "0 convolutions"),
    ],
)
def test_networks_that_do_not_suit_the_data(settings: NetConfig, shape: tuple[int, ...], match: str) -> None:
    with pytest.raises(SettingsError, match=match):
        build_net(settings, shape)
