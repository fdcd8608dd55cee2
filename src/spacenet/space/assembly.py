"""Putting a workspace together: frozen numbers are a constant, the task's own are scattered into a copy of it."""

import itertools
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
    """Hidden layers are filled up to a multiple of this with units that have no connections."""
    sources_last: bool = False
    """Whether a convolution's weights have their sources side by side."""
    together: bool = False
    """Whether all numbers are assembled in one vector: few operations, at the price of some copying."""

    @classmethod
    def for_device(cls, device: torch.device, blueprint: Blueprint) -> "Layout":
        """What the device is fast with. A small network's time on a GPU goes to launching operations."""
        if device.type != "cuda":
            return cls()
        return cls(8, sources_last=True, together=True) if blueprint.convolves else cls(together=True)


class Assembly:
    """Each link's weights and each trained unit value as a flat part, and where the task's own numbers lie in it."""

    def __init__(
        self,
        links: Mapping[str, LinkInTraining],
        frozen: Mapping[str, Tensor],
        layers: Sequence[UnitsInTraining],
        device: torch.device,
        layout: Layout,
    ) -> None:
        """`frozen` has each link's weights before the task, (targets, sources, *kernel)."""
        self.links, self.layout = links, layout
        units = {key: values for part in layers for key, values in part.frozen.items()}
        stored = {name: self._stored(weight) for name, weight in frozen.items()} | units
        self.shapes = {name: values.shape for name, values in stored.items()}
        self.sizes = [values.numel() for values in stored.values()]
        self.base = torch.cat([values.flatten() for values in stored.values()]).to(device)
        self.bases = self.base.split(self.sizes)
        own_units = [part.own[key] for part in layers for key in part.frozen]
        self.own: list[nn.Parameter] = [link.value for link in links.values()] + own_units
        self._selected = [part.selected for part in layers for _ in part.frozen]
        self.places = self._places()
        self.place = self._joined()

    def values(self) -> dict[str, Tensor]:
        """Each link's weights and each trained unit value, frozen and own together."""
        values = {}
        for (name, shape), part in zip(self.shapes.items(), self._parts(), strict=True):
            whole = part if len(shape) == 1 else part.view(shape)
            values[name] = whole.permute(0, 3, 1, 2) if self._turned(len(shape)) else whole
        return values

    def _parts(self) -> Sequence[Tensor]:
        if not self.layout.together:
            pieces = zip(self.bases, self.places, self.own, strict=True)
            return [base.index_copy(0, place, own.flatten()) for base, place, own in pieces]
        whole = self.base.index_copy(0, self.place, torch.cat([value.flatten() for value in self.own]))
        count = len(self.links)
        links, units = whole.split([sum(self.sizes[:count]), sum(self.sizes[count:])])
        kind = self.base.device.type
        if torch.is_autocast_enabled(kind):  # all weights at once; each convolution would else cast its own
            links = links.to(torch.get_autocast_dtype(kind))
        return [*links.split(self.sizes[:count]), *units.split(self.sizes[count:])]

    def rewired(self) -> None:
        """Connections have moved. In place: a recorded step reads it there."""
        self.places = self._places()
        self.place.copy_(self._joined())

    def _places(self) -> list[Tensor]:
        """Where in its part each of the task's own numbers lies."""
        places = []
        for link in self.links.values():
            elements = link.value[0].numel() if len(link.value) else 1
            element = torch.arange(elements, device=link.place.device)
            if self._turned(link.value.dim() + 1):
                target, source = link.place // link.shape[1], link.place % link.shape[1]
                place = (target[:, None] * elements + element) * link.shape[1] + source[:, None]
            else:
                place = link.place[:, None] * elements + element
            places.append(place.flatten())
        return places + self._selected

    def _joined(self) -> Tensor:
        """The same places in the vector of all parts."""
        starts = itertools.accumulate(self.sizes[:-1], initial=0)
        return torch.cat([start + place for start, place in zip(starts, self.places, strict=True)])

    def _stored(self, weight: Tensor) -> Tensor:
        return weight.permute(0, 2, 3, 1) if self._turned(weight.dim()) else weight

    def _turned(self, dimensions: int) -> bool:
        """Whether a weight of so many dimensions is stored with its sources last."""
        return self.layout.sources_last and dimensions == 4
