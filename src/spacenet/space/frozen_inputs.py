"""Units outside of a workspace that feed it and cannot change while it trains: constants of the input."""

from collections.abc import Mapping

import torch
from torch import Tensor

from spacenet.space.blueprint import CPU, PRECOMPUTED, connect
from spacenet.space.cut import Units, block, cut
from spacenet.space.ledger import Ledger

CHUNK = 2048


class FrozenInputs:
    """A frozen network of the constant units. Its *drive* is what they add to each link's units in the workspace."""

    def __init__(self, ledger: Ledger, constant: Units, live: Units, device: torch.device = CPU) -> None:
        self.forward = ledger.blueprint.forward
        self.values = {name: value.to(device) for name, value in cut(ledger, constant).items()}
        self.feeds: dict[str, Tensor] = {}
        self.links = {link.name: link for link in ledger.blueprint.links}
        for link in ledger.blueprint.links:
            if link.source != ledger.blueprint.input.name:  # the inputs are in the workspace themselves
                feed = block(ledger, link, {link.source: constant[link.source], link.target: live[link.target]})
                if bool(feed.any()):
                    self.feeds[link.name] = feed.to(device)

    def precomputed(self, x: Tensor) -> dict[str, Tensor]:
        """The drives for all samples, computed once; they enter the workspace's `Params` batch by batch."""
        if not self.feeds:
            return {}
        parts = [self._drives(chunk) for chunk in x.split(CHUNK)]
        return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}

    def _drives(self, x: Tensor) -> Mapping[str, Tensor]:
        precomputed = {}

        def hook(link: str, h: Tensor) -> None:
            if link in self.feeds:
                precomputed[link + PRECOMPUTED] = connect(self.feeds, self.links[link], h, None)

        with torch.no_grad():
            self.forward(self.values, x, hook)
        return precomputed
