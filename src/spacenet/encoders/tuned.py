"""Encoders whose weights were tuned on images of one's own, as files that are encoders again."""

import copy
import warnings

import torch
from torch import Tensor, nn
from torch.export import Dim

from spacenet.encoders.encoder import Encoder
from spacenet.encoders.exported import write_program
from spacenet.encoders.inputs import ImageInput
from spacenet.encoders.networks import FrozenNetwork, freeze
from spacenet.errors import SettingsError


def find_network(encoder: Encoder) -> FrozenNetwork:
    """The encoder's network, of which a copy can be trained. Raises `SettingsError` where there is none."""
    network = encoder.network
    if encoder.images is None:
        problem = f"{encoder.name} takes {encoder.takes.needs}; only encoders of images are tuned"
        raise SettingsError(problem, setting="encoder")
    if not isinstance(network, FrozenNetwork) or not isinstance(network.inner, nn.Module) or not _trains(network):
        raise SettingsError(
            f"the network of {encoder.name} cannot be trained; give efficientnet-lite0, efficientnet-lite2, timm:NAME, "
            "torchvision:NAME, or in Python a torch module",
            setting="encoder",
        )
    return network


def copy_network(encoder: Encoder) -> FrozenNetwork:
    """The same with weights of its own, to be trained."""
    return copy.deepcopy(find_network(encoder)).requires_grad_(True)


def _trains(network: FrozenNetwork) -> bool:
    """Whether it is a module and not a program of torch.export, whose batch norm is that of prediction."""
    return not hasattr(network, "content")


class TunedNetwork(nn.Module):
    """A network behind the normalization that encoders in files get, which need not be its own. With `mirror`, its
    features are the mean of those of an image and of its mirror image."""

    def __init__(self, network: FrozenNetwork, own: ImageInput, mirror: bool = False) -> None:
        super().__init__()
        given = ImageInput()
        self.network, self.mirror = network, mirror
        mean, std, own_mean, own_std = (
            torch.tensor(each).view(3, 1, 1) for each in (given.mean, given.std, own.mean, own.std)
        )
        self.register_buffer("factor", std / own_std)
        self.register_buffer("shift", (mean - own_mean) / own_std)

    def forward(self, x: Tensor) -> Tensor:
        x = x * self.get_buffer("factor") + self.get_buffer("shift")
        found = self.network.compute(x)
        return (found + self.network.compute(x.flip(-1))) / 2 if self.mirror else found


def write_tuned(network: FrozenNetwork, own: ImageInput, size: int, mirror: bool = False) -> bytes:
    """The content of a .pt2 file with an encoder that takes images of this size.

    Parameters
    ----------
    network : FrozenNetwork
        What was tuned.
    own : ImageInput
        How images are normalized for it.
    size : int
        The side of the images that it was tuned on.
    mirror : bool
        Whether features are averaged over an image and its mirror image.
    """
    freeze(network)
    network.cpu()
    example = torch.zeros(2, 3, size, size)  # with one, torch would assume that there is always one
    with torch.no_grad(), warnings.catch_warnings(action="ignore"):  # the exporter warns of how tensors lie in memory
        made = TunedNetwork(network, own, mirror).eval()
        program = torch.export.export(made, (example,), dynamic_shapes=({0: Dim("batch")},))
        return write_program(program, {})
