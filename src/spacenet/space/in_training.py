"""The parts of a workspace: one link, and one layer's unit values, while a task trains."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spacenet.space.blueprint import BATCH_STATS, Layer, Link


@dataclass
class LinkInTraining:
    """One link: the task's own connections, and where they lie in the block of its weights."""

    link: Link
    shape: tuple[int, int]  # targets, sources
    taken: Tensor  # (targets, sources): owned by an earlier task
    place: Tensor  # (m,) where the task's connections lie in the block
    value: nn.Parameter  # (m, *kernel)
    importance: Tensor  # (m, *kernel) Ω of equation 4
    moved: Tensor  # (m,) whether it was ever dropped and grown elsewhere

    def gradient(self) -> Tensor:
        assert self.value.grad is not None, "there was no backward pass"
        return self.value.grad

    def connection_importance(self) -> Tensor:
        """Each connection's importance: a kernel's is the sum over its elements."""
        importance = self.importance.cpu()
        return importance if importance.dim() == 1 else importance.flatten(1).sum(1)

    def ends(self) -> tuple[Tensor, Tensor]:
        """Targets and sources of the task's connections, as places in the block."""
        place = self.place.cpu()
        return place // self.shape[1], place % self.shape[1]

    def to(self, device: torch.device) -> "LinkInTraining":
        """The same on a device. What rewiring alone needs stays here."""
        self.place, self.importance = self.place.to(device), self.importance.to(device)
        self.value = nn.Parameter(self.value.data.to(device))
        return self


@dataclass
class UnitsInTraining:
    """One layer's unit values: the task trains those of its selected units, all others stay as they are.

    Statistics (batch norm's) are held for all units; the forward pass brings those of `uses_batch_stats` units up to date.
    """

    layer: Layer
    selected: Tensor  # places of the selected units
    frozen: dict[str, Tensor] = field(default_factory=dict)  # what the trained values of all units were before
    own: dict[str, nn.Parameter] = field(default_factory=dict)
    statistics: dict[str, Tensor] = field(default_factory=dict)
    uses_batch_stats: Tensor | None = None

    @classmethod
    def open(
        cls, layer: Layer, units: Mapping[str, Tensor], live: Tensor, selected: Tensor, size: int
    ) -> "UnitsInTraining":
        """Take the values of the `live` units from the ledger's; `selected` are places among them.

        `size` units stand for the layer: those beyond the live ones have no connections.
        """
        part = cls(layer, selected)
        for key, value in layer.keys().items():
            values = F.pad(units[key][live], (0, size - len(live)), value=value.initial)
            if value.trained:
                part.frozen[key], part.own[key] = values, nn.Parameter(values[selected])
            else:
                part.statistics[key] = values
        if part.statistics:
            part.uses_batch_stats = torch.zeros(size, dtype=torch.bool).index_fill_(0, selected, True)
            if len(selected) == len(live):
                part.uses_batch_stats = torch.zeros(
                    0, dtype=torch.bool
                )  # all of them: `normalize` then takes its fast path
        return part

    def to(self, device: torch.device) -> "UnitsInTraining":
        """The same on a device."""
        self.selected = self.selected.to(device)
        self.statistics = {key: statistic.to(device) for key, statistic in self.statistics.items()}
        self.own = {key: nn.Parameter(own.data.to(device)) for key, own in self.own.items()}
        self.uses_batch_stats = None if self.uses_batch_stats is None else self.uses_batch_stats.to(device)
        return self

    def values(self, training: bool) -> dict[str, Tensor]:
        """Statistics, and in training which units are fresh."""
        marked = (
            {self.layer.name + BATCH_STATS: self.uses_batch_stats}
            if training and self.uses_batch_stats is not None
            else {}
        )
        return {**self.statistics, **marked}

    def of_selected(self) -> dict[str, Tensor]:
        """The values of the selected units, without gradients: what the task leaves in the ledger."""
        values = {key: own.detach().cpu() for key, own in self.own.items()}
        return values | {key: statistic[self.selected].cpu() for key, statistic in self.statistics.items()}

    def load(self, values: Mapping[str, Tensor]) -> None:
        """Take back what `of_selected` gave."""
        for key, own in self.own.items():
            own.data.copy_(values[key])
        for key, statistic in self.statistics.items():
            statistic.index_copy_(0, self.selected, values[key].to(statistic.device))
