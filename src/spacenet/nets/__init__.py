"""Architectures by name, described once and built at any width."""

import math
from dataclasses import dataclass

from spacenet.errors import SettingsError
from spacenet.nets.mlp import mlp
from spacenet.space.blueprint import Blueprint


@dataclass(frozen=True)
class NetSettings:
    """The network."""

    hidden: tuple[int, ...] = (400, 400)
    """Units of each hidden layer."""

    def __post_init__(self) -> None:
        if not self.hidden or min(self.hidden) < 1:
            raise SettingsError(f"hidden: {self.hidden} are not layer widths (need one or more numbers from 1 up)")


def build_net(settings: NetSettings, input_shape: tuple[int, ...]) -> Blueprint:
    """Describe the network for inputs of this shape."""
    return mlp(math.prod(input_shape), settings.hidden)
