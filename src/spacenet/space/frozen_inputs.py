"""Frozen units outside of a workspace that feed it: what they compute depends on the input alone."""

from collections.abc import Mapping

import torch
from torch import Tensor

from spacenet.space.blueprint import CPU, PRECOMPUTED
from spacenet.space.cut import Units, block, cut
from spacenet.space.ledger import Ledger
from spacenet.space.operations import connect

CHUNK = 2048
"""Samples that are computed at a time."""


class FrozenInputs:
    """The network of the frozen units that a workspace leaves out."""

    def __init__(self, ledger: Ledger, frozen: Units, live: Units, device: torch.device = CPU) -> None:
        """`frozen` are the units that are left out and the inputs, `live` those of the workspace."""
        self.forward = ledger.blueprint.forward
        self.params = {name: tensor.to(device) for name, tensor in cut(ledger, frozen).items()}
        self.feeds: dict[str, Tensor] = {}
        """For each link, its weights from frozen to live units."""
        self.links = {link.name: link for link in ledger.blueprint.links}
        for link in ledger.blueprint.links:
            if link.source != ledger.blueprint.input.name:  # the inputs are in the workspace themselves
                feed = block(ledger, link, {link.source: frozen[link.source], link.target: live[link.target]})
                if bool(feed.any()):
                    self.feeds[link.name] = feed.to(device)

    def precompute(self, x: Tensor) -> dict[str, Tensor]:
        """What the frozen units add to each link's targets, for all samples; a batch takes its rows of it."""
        if not self.feeds:
            return {}
        found: dict[str, Tensor] = {}
        for start in range(0, max(1, len(x)), CHUNK):
            for name, part in self._compute(x[start : start + CHUNK]).items():
                if name not in found:
                    found[name] = part.new_empty(len(x), *part.shape[1:])
                found[name][start : start + CHUNK] = part
        return found

    def _compute(self, x: Tensor) -> Mapping[str, Tensor]:
        precomputed = {}

        def hook(link: str, h: Tensor) -> None:
            if link in self.feeds:
                precomputed[link + PRECOMPUTED] = connect(self.feeds, self.links[link], h, None)

        with torch.no_grad():
            self.forward(self.params, x, hook)
        return precomputed
