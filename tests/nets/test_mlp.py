import pytest
import torch

from spacenet.errors import SettingsError
from spacenet.nets import NetConfig, build_net
from spacenet.nets.mlp import build_mlp


def test_it_describes_populations_and_links_in_order() -> None:
    net = build_mlp((5,), (7, 3))
    assert [(p.name, p.size) for p in net.layers] == [("input", 5), ("hidden1", 7), ("hidden2", 3), ("output", 0)]
    assert [(link.source, link.target) for link in net.links] == [
        ("input", "hidden1"),
        ("hidden1", "hidden2"),
        ("hidden2", "output"),
    ]


def test_forward_is_relu_between_layers_and_none_at_the_end() -> None:
    net = build_mlp((2,), (2,))
    values = {
        "input-hidden1": torch.tensor([[1.0, 0.0], [0.0, 1.0]]),
        "hidden1.bias": torch.tensor([0.0, -3.0]),
        "hidden1-output": torch.tensor([[-1.0, 1.0]]),
        "output.bias": torch.tensor([0.5]),
    }
    assert net.forward(values, torch.tensor([[2.0, 1.0]])).tolist() == [[-1.5]]


def test_images_are_flattened() -> None:
    assert build_net(NetConfig(hidden=(4,)), (2, 3)).input.size == 6


@pytest.mark.parametrize("hidden", [(0,), (4, 0)])
def test_impossible_widths(hidden: tuple[int, ...]) -> None:
    with pytest.raises(SettingsError, match="hidden"):
        NetConfig(hidden=hidden)
