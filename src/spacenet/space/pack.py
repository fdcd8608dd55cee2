"""The pack: everything learned so far as one small dense network. Unused units are physically gone."""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from spacenet.space.blueprint import CPU
from spacenet.space.cut import Units, cut, packed_units
from spacenet.space.ledger import Ledger


@dataclass(frozen=True)
class Pack:
    """A function that predicts and the parameters it computes with, apart: so both can be moved, exported, measured."""

    forward: Callable[..., Tensor]
    """(params, x) → one score for each class; that of a plain network also takes a `Hook`."""
    params: dict[str, Tensor]
    units: Units = field(default_factory=dict)  # the units that the layers of a plain network hold

    def __call__(self, x: Tensor) -> Tensor:
        """One score for each class seen so far."""
        with torch.inference_mode():
            return self.forward(self.params, x)


def pack(ledger: Ledger, device: torch.device = CPU) -> Pack:
    """Pack what the ledger holds, to predict on a device: all tasks' classifiers, and the units that reach them."""
    units = packed_units(ledger)
    params = {name: tensor.to(device) for name, tensor in cut(ledger, units).items()}
    return Pack(ledger.blueprint.forward, params, units)
