"""Weights that are exactly zero: how they become zero, and which units the others connect."""

import torch
from torch import Tensor
from torch.nn import functional as F

from spacenet.space.blueprint import Blueprint, Params


def connections(weight: Tensor) -> Tensor:
    """Which units are connected by a weight that is not zero, (targets, sources)."""
    return weight.detach().reshape(*weight.shape[:2], -1).any(2).cpu()


def find_units(blueprint: Blueprint, params: Params, outputs: Tensor) -> dict[str, Tensor]:
    """In each layer, the units that these outputs depend on, directly or through other units."""
    connected = {link.name: connections(params[link.name]) for link in blueprint.links}
    found = {link.source: torch.zeros(connected[link.name].shape[1], dtype=torch.bool) for link in blueprint.links}
    found[blueprint.output.name] = outputs
    before, now = -1, 0
    while before < now:  # one backward pass suffices, except for residual streams, which blocks read and write
        for link in reversed(blueprint.links):
            found[link.source] |= connected[link.name][found[link.target]].any(0)
        before, now = now, sum(int(units.sum()) for units in found.values())
    return found


def soft_threshold(weight: Tensor, threshold: float | Tensor) -> Tensor:
    """The proximal step of the absolute value: weights move towards zero by the threshold."""
    if isinstance(threshold, Tensor):  # on a GPU, where it may change between replays of a recorded step
        return weight - weight.clamp(-threshold, threshold)
    return F.softshrink(weight, threshold)


def shrink_groups(parts: list[Tensor], threshold: float | Tensor) -> None:
    """The proximal step of the group norm, in place: row i of all parts together is one group."""
    norm = torch.stack([part.flatten(1).square().sum(1) for part in parts]).sum(0).sqrt()
    factor = (1 - threshold / norm.clamp_min(1e-12)).clamp_min(0.0)
    for part in parts:
        part.mul_(factor.view(-1, *(1 for _ in part.shape[1:])))
