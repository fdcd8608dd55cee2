"""Putting a workspace's numbers together: frozen ones are a constant, the task's own are scattered into a copy of it.

All links and unit values lie in one vector. So a step assembles the whole network in a handful of operations, however
many links it has; on a GPU their number is what a small network's time goes to.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from spacenet.space.blueprint import Blueprint
from spacenet.space.in_training import LinkInTraining, UnitsInTraining


@dataclass(frozen=True)
class Layout:
    """How the numbers lie. The function is the same with any."""

    multiple: int = 1
    """Hidden populations are filled up to a multiple of this with units that have no connections."""
    sources_last: bool = False
    """Whether a convolution's weights have their sources side by side."""

    @classmethod
    def for_device(cls, device: torch.device, blueprint: Blueprint) -> "Layout":
        """What the device's convolutions are fast with."""
        return cls(8, True) if device.type == "cuda" and blueprint.convolves else cls()


class Assembly:
    """The vector of a workspace, and where in it everything lies."""

    def __init__(
        self,
        links: Mapping[str, LinkInTraining],
        frozen: Mapping[str, Tensor],
        populations: Sequence[UnitsInTraining],
        device: torch.device,
        layout: Layout,
    ) -> None:
        """`frozen` has each link's weights before the task, (targets, sources, *kernel)."""
        self.links, self.layout = links, layout
        units = {key: values for part in populations for key, values in part.frozen.items()}
        self.shapes = {name: self._stored(weight).shape for name, weight in frozen.items()}
        self.link_sizes = [shape.numel() for shape in self.shapes.values()]
        self.unit_sizes = {key: len(values) for key, values in units.items()}
        parts = [self._stored(frozen[name]).flatten() for name in self.shapes] + list(units.values())
        self.base = torch.cat(parts).to(device)
        own = [part.own[key] for part in populations for key in part.frozen]
        self.own: list[nn.Parameter] = [link.value for link in links.values()] + own
        self._selected = [part.selected for part in populations for _ in part.frozen]
        self.place = self._places()

    def values(self) -> dict[str, Tensor]:
        """Each link's weights and each trained unit value, frozen and own together."""
        own = torch.cat([value.flatten() for value in self.own])
        whole = self.base.index_copy(0, self.place, own)
        weights, units = whole.split([sum(self.link_sizes), sum(self.unit_sizes.values())])
        kind = self.base.device.type
        if torch.is_autocast_enabled(kind):  # at once; each convolution would else do it for its own
            weights = weights.to(torch.get_autocast_dtype(kind))
        values = dict(zip(self.unit_sizes, units.split(list(self.unit_sizes.values())), strict=True))
        for (name, shape), part in zip(self.shapes.items(), weights.split(self.link_sizes), strict=True):
            weight = part.view(shape)
            values[name] = weight.permute(0, 3, 1, 2) if self._turned(weight.dim()) else weight
        return values

    def rewired(self) -> None:
        """Connections have moved. In place: a recorded step reads it there."""
        self.place.copy_(self._places())

    def _places(self) -> Tensor:
        """Where in the vector each of the task's own numbers lies."""
        places, start = [], 0
        for link, size in zip(self.links.values(), self.link_sizes, strict=True):
            elements = link.value[0].numel() if len(link.value) else 1
            element = torch.arange(elements, device=link.place.device)
            if self._turned(link.value.dim() + 1):
                target, source = link.place // link.shape[1], link.place % link.shape[1]
                place = (target[:, None] * elements + element) * link.shape[1] + source[:, None]
            else:
                place = link.place[:, None] * elements + element
            places.append(start + place.flatten())
            start += size
        for selected, size in zip(self._selected, self.unit_sizes.values(), strict=True):
            places.append(start + selected)
            start += size
        return torch.cat(places)

    def _stored(self, weight: Tensor) -> Tensor:
        return weight.permute(0, 2, 3, 1) if self._turned(weight.dim()) else weight

    def _turned(self, dimensions: int) -> bool:
        """Whether a weight of so many dimensions is stored with its sources last."""
        return self.layout.sources_last and dimensions == 4
