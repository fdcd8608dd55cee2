"""Weights that are exactly zero: how they become so, and what is connected without them."""

import torch
from torch import Tensor

from spacenet.space.blueprint import Blueprint, Params


def connections(weight: Tensor) -> Tensor:
    """Which units are connected, (targets, sources): those between which a weight is not zero."""
    return weight.detach().reshape(*weight.shape[:2], -1).any(2).cpu()


def reached(blueprint: Blueprint, values: Params, outputs: Tensor) -> dict[str, Tensor]:
    """In each layer, the units from which connections lead to these outputs, over any way."""
    connected = {link.name: connections(values[link.name]) for link in blueprint.links}
    found = {link.source: torch.zeros(connected[link.name].shape[1], dtype=torch.bool) for link in blueprint.links}
    found[blueprint.output.name] = outputs
    before, now = -1, 0
    while before < now:  # once from back to front is enough, but for streams that blocks read and write
        for link in reversed(blueprint.links):
            found[link.source] |= connected[link.name][found[link.target]].any(0)
        before, now = now, sum(int(units.sum()) for units in found.values())
    return found


def shrink_groups(parts: list[Tensor], threshold: float) -> None:
    """The proximal step of a group's norm: row i of all parts together is one group."""
    norm = torch.stack([part.flatten(1).square().sum(1) for part in parts]).sum(0).sqrt()
    factor = (1 - threshold / norm.clamp_min(1e-12)).clamp_min(0.0)
    for part in parts:
        part.mul_(factor.view(-1, *(1 for _ in part.shape[1:])))
