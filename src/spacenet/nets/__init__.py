"""Architectures by name, described once and built at any width."""

import math
import re
from dataclasses import dataclass

from spacenet.errors import SettingsError
from spacenet.nets.mlp import mlp
from spacenet.nets.resnet18 import resnet18
from spacenet.nets.small_cnn import small_cnn
from spacenet.nets.wide_resnet import wide_resnet
from spacenet.option_types import Integers
from spacenet.space.blueprint import Blueprint

MLP, SMALL_CNN, RESNET_18 = "mlp", "small-cnn", "resnet-18"
WIDE_RESNET = re.compile(r"wrn-(\d{1,3})-(\d{1,3})")
NETS = f"{MLP}, {SMALL_CNN}, {RESNET_18} or wrn-DEPTH-WIDTH, e.g. wrn-28-10"
HIDDEN = {MLP: (400, 400), SMALL_CNN: (32, 32, 64, 64, 512)}


@dataclass(frozen=True)
class NetConfig:
    """The network."""

    net: str = MLP
    """Its architecture: mlp, small-cnn, resnet-18 or wrn-DEPTH-WIDTH, e.g. wrn-28-10."""
    hidden: Integers = ()
    """Units of each hidden layer (mlp, small-cnn). None given: 400 400, or 32 32 64 64 512."""

    def __post_init__(self) -> None:
        if self.net not in (*HIDDEN, RESNET_18) and not WIDE_RESNET.fullmatch(self.net):
            raise SettingsError(f"net: there is no {self.net!r}; there are {NETS}")
        if self.hidden and self.net not in HIDDEN:
            raise SettingsError(f"hidden: the layers of {self.net} follow from its name")
        if self.hidden and min(self.hidden) < 1:
            raise SettingsError(f"hidden: {self.hidden} are not layer widths (need one or more numbers from 1 up)")


def build_net(settings: NetConfig, input_shape: tuple[int, ...]) -> Blueprint:
    """Describe the network for inputs of this shape."""
    if settings.net == MLP:
        return mlp(math.prod(input_shape), settings.hidden or HIDDEN[MLP])
    if len(input_shape) not in (2, 3):
        raise SettingsError(f"net: {settings.net} takes images, and samples here have the shape {input_shape}; try mlp")
    image = (*(1,) * (3 - len(input_shape)), *input_shape)
    if settings.net == SMALL_CNN:
        *maps, linear = settings.hidden or HIDDEN[SMALL_CNN]
        return small_cnn((image[0], image[1], image[2]), maps, linear)
    if settings.net == RESNET_18:
        return resnet18(image[0])
    found = WIDE_RESNET.fullmatch(settings.net)
    assert found is not None
    return wide_resnet(image[0], int(found[1]), int(found[2]))
