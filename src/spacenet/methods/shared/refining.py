"""Training the connections into outputs with more samples of their classes. Nothing else changes: hidden connections
may be read by later tasks, and outputs of classes that have no samples would only learn to be small."""

from collections.abc import Callable, Sequence

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from spacenet.config.training import TrainingConfig
from spacenet.data.stream import Samples
from spacenet.methods.base import map_batches
from spacenet.space.blueprint import CPU, Link
from spacenet.space.ledger import Ledger
from spacenet.space.pack import pack
from spacenet.utils.optimizers import SGD, Adam

PASSES = 20
"""Over the samples, unless the number of epochs is given."""


def can_refine(ledger: Ledger) -> bool:
    """Whether outputs are linear in what enters them."""
    return {value.name for value in ledger.blueprint.output.unit_values} <= {"bias"}


def refine_outputs(ledger: Ledger, samples: Samples, training: TrainingConfig, rng: Generator) -> None:
    """Train the connections into the outputs that samples belong to, and tell these outputs apart, of whatever task."""
    outputs = OwnOutputs(ledger, samples.y.unique())
    h, y = map_batches(outputs.features, samples.x, CPU), torch.searchsorted(outputs.numbers, samples.y)
    kind: Callable[..., SGD | Adam] = Adam if training.optimizer == "adam" else SGD
    optimizer = kind(dict(outputs.named_parameters()), training.initial_rate, weight_decay=training.weight_decay)
    for _ in range(training.epochs or PASSES):
        for rows in torch.randperm(len(y), generator=rng).split(training.batch_size):
            each = F.cross_entropy(outputs(h[rows]), y[rows], reduction="none")
            optimizer.zero_grad()
            (each if samples.weight is None else each * samples.weight[rows]).mean().backward()
            optimizer.step()
    outputs.enter()


class OwnOutputs(nn.Module):
    """Some outputs of a ledger's network: the connections that they have, and their biases."""

    mask: Tensor

    def __init__(self, ledger: Ledger, numbers: Tensor) -> None:
        super().__init__()
        self.ledger, self.numbers, self.links = ledger, numbers, ledger.blueprint.classifiers
        self.network = pack(ledger, CPU, [link.name for link in self.links])
        params, self.bias_name = self.network.params, f"{ledger.blueprint.output.name}.bias"
        self.weight = nn.Parameter(torch.cat([params[link.name].flatten(1)[numbers] for link in self.links], 1))
        self.register_buffer("mask", torch.cat([self._mask(link) for link in self.links], 1))
        biases = ledger.units.get(self.bias_name)
        self.bias = None if biases is None else nn.Parameter(biases[numbers])

    def _connections(self, link: Link) -> tuple[Tensor, Tensor, Tensor]:
        """The rows of the outputs' connections in the ledger, their outputs and their sources in the pack."""
        held = self.ledger.connections[link.name]
        rows = torch.isin(held.target.long(), self.numbers).nonzero().flatten()
        source = torch.searchsorted(self.network.units[link.source], held.source[rows].long())
        return rows, torch.searchsorted(self.numbers, held.target[rows].long()), source

    def _mask(self, link: Link) -> Tensor:
        _, target, source = self._connections(link)
        mask = torch.zeros(len(self.numbers), self.network.params[link.name].shape[1], link.each[1])
        mask[target, source] = 1.0
        return mask.flatten(1)

    def features(self, x: Tensor) -> Tensor:
        """What enters the outputs, (n, d)."""
        entering: dict[str, Tensor] = {}
        self.network.forward(self.network.params, x, entering.__setitem__)
        return self.ledger.blueprint.features(entering)

    def forward(self, h: Tensor) -> Tensor:
        return F.linear(h, self.weight * self.mask, self.bias)

    @torch.no_grad()
    def enter(self) -> None:
        """Put the values into the ledger."""
        sizes = [self.network.params[link.name].flatten(1).shape[1] for link in self.links]
        for link, part in zip(self.links, self.weight.split(sizes, 1), strict=True):
            rows, target, source = self._connections(link)
            held = self.ledger.connections[link.name]
            values = part.reshape(len(self.numbers), -1, link.each[1])[target, source]
            held.value[rows] = values.reshape(held.value[rows].shape)
        if self.bias is not None:
            self.ledger.units[self.bias_name][self.numbers] = self.bias


def split_by_task(numbers: Tensor, tasks: Sequence[range]) -> list[tuple[int, Tensor]]:
    """The tasks that some class numbers belong to, and for each the rows of its numbers."""
    found = [(task, (numbers >= own.start) & (numbers < own.stop)) for task, own in enumerate(tasks)]
    return [(task, rows.nonzero().flatten()) for task, rows in found if bool(rows.any())]
