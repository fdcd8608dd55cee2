"""The pack: everything learned so far as one small dense network. Unused units are physically gone."""

from dataclasses import dataclass

import torch
from torch import Tensor

from spacenet.space.blueprint import CPU, Forward
from spacenet.space.cut import Units, cut, marks, numbers, upstream
from spacenet.space.ledger import Ledger


@dataclass(frozen=True)
class Pack:
    """A network that predicts: all tasks' classifiers are back, and what cannot reach them is left out."""

    forward: Forward
    units: Units
    values: dict[str, Tensor]

    def __call__(self, x: Tensor) -> Tensor:
        """One score for each class seen so far."""
        with torch.no_grad():
            return self.forward(self.values, x)


def pack(ledger: Ledger, device: torch.device = CPU) -> Pack:
    """Pack what the ledger holds, to predict on a device."""
    blueprint = ledger.blueprint
    ends = {p.name: torch.arange(ledger.size(p.name)) for p in (blueprint.input, blueprint.output)}
    units = numbers(upstream(ledger, marks(ledger, ends)))
    values = {name: value.to(device) for name, value in cut(ledger, units).items()}
    return Pack(blueprint.forward, units, values)
