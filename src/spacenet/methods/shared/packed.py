"""Predicting from a ledger: the small dense network that is cut out of it, and how much of the whole one is in use."""

from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor

from spacenet.methods.base import LayerUsage, Method, kept
from spacenet.methods.shared.balance import Balance
from spacenet.methods.shared.sparse_settings import SparseSettings
from spacenet.space.ledger import FREE, Ledger
from spacenet.space.pack import Pack, Units, pack, packed_numbers, packed_units
from spacenet.space.removal import place_outputs

BALANCE = "balance"


class PackedMethod(Method):
    """What a method that divides a network among tasks computes from its ledger."""

    settings: SparseSettings
    ledger: Ledger = kept("network", on_cpu=True)
    balance: Balance = kept(BALANCE, on_cpu=True)
    packs_tasks_apart: ClassVar[bool] = False
    """Whether each task is packed alone to predict."""

    @cached_property
    def pack(self) -> Pack:
        """The network in compact form, ready to predict."""
        balanced = self.settings.balance != "none"  # by the classifiers' weights
        keep_dense = [link.name for link in self.blueprint.classifiers] if balanced else []
        return pack(self.ledger, self.device, keep_dense)

    @cached_property
    def placed_pack(self) -> Pack:
        """The network with an output for each of the `places`, where there are any."""
        return pack(self.placed_ledger, self.device, more=self.places.units) if self.places else self.pack

    @cached_property
    def placed_ledger(self) -> Ledger:
        """The same in the ledger."""
        return place_outputs(self.ledger, self.places.classes) if self.places else self.ledger

    @cached_property
    def predictor(self) -> Pack:
        """Everything that is needed to predict."""
        if self.places:
            return self.places.drop(self.placed_pack, self.device)
        classifier = torch.cat([self.pack.params[link.name].flatten(1) for link in self.blueprint.classifiers], 1)
        return self.balance.apply(self.pack, classifier, self.classes[: self.tasks_learned])

    def predict(self, x: Tensor) -> Tensor:
        return self.predictor(x)

    def activations(self, x: Tensor) -> dict[str, Tensor]:
        packed, sources = self.pack, {link.name: link.source for link in self.blueprint.links}
        found: dict[str, Tensor] = {}

        def hook(link: str, h: Tensor) -> None:
            name = sources[link]
            if name != self.blueprint.input.name and name not in found:
                each = h.reshape(len(h), packed.params[link].shape[1], -1).mean(2).cpu()  # the mean of a feature map
                units = packed.units[name]
                found[name] = torch.zeros(len(h), self.ledger.size(name)).index_copy_(1, units, each[:, : len(units)])

        with torch.no_grad():
            packed.forward(packed.params, x, hook)
        return found

    def layer_usage(self) -> list[LayerUsage]:
        layers = []
        for layer in self.blueprint.layers[1:]:
            name, used = layer.name, self.ledger.used(layer.name)
            into = [self.ledger.connections[link.name] for link in self.blueprint.links if link.target == name]
            reserved, unused = int((self.ledger.state[name] != FREE).sum()), int((~used).sum())
            layers.append(LayerUsage(name, len(used), int(used.sum()), reserved, unused, sum(map(len, into))))
        return layers

    def units_packed(self) -> Units:
        """The units of hidden layers that predictions are computed with, as `Places` names them."""
        units = packed_units(self.ledger)
        return {layer.name: units[layer.name] for layer in self.blueprint.hidden}

    def placed_numbers(self) -> int:
        """How many weights `predictor` computes with, where there are `places`."""
        return packed_numbers(self.placed_ledger, more=self.places.units)

    def bytes_to_predict(self) -> int:
        return sum(value.nbytes for value in self.predictor.params.values())

    def packed_sizes(self) -> dict[str, int]:
        units = packed_units(self.ledger)
        return {layer.name: len(units[layer.name]) for layer in self.blueprint.hidden}
