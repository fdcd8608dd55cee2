"""A task's outputs for rotated images, as an expert keeps them: their weights by classifier link, (outputs, units,
features), with the numbers of these units; and their biases."""

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from spacenet.methods.shared.rotations import ORIENTATIONS
from spacenet.space.blueprint import Blueprint
from spacenet.space.ledger import Ledger
from spacenet.space.pack import Pack, Units
from spacenet.space.workspace import Workspace
from spacenet.utils.tensors import check_finite, check_shapes

BIAS = "bias"


def read_head(linear: nn.Linear, workspace: Workspace, blueprint: Blueprint) -> dict[str, Tensor]:
    """A task's outputs for rotated images, as they were trained in this workspace."""
    weight, links = linear.weight.detach().cpu(), blueprint.classifiers
    parts = weight.split([workspace.sizes[link.source] * link.each[1] for link in links], 1)
    head = {BIAS: linear.bias.detach().cpu().clone()}
    for link, part in zip(links, parts, strict=True):
        units = workspace.units[link.source]
        by_unit = part.unflatten(1, (workspace.sizes[link.source], link.each[1]))
        head |= {f"units/{link.name}": units.float(), f"weight/{link.name}": by_unit[:, : len(units)].clone()}
    return head


def align_head(head: Mapping[str, Tensor], network: Pack, ends: Units, blueprint: Blueprint) -> dict[str, Tensor]:
    """The same as weight and bias of a layer that reads all of the classifier's inputs in a packed network."""
    columns = []
    for link in blueprint.classifiers:
        weight = head[f"weight/{link.name}"]
        rows = torch.searchsorted(network.units[link.source], ends[link.source])
        aligned = weight.new_zeros(len(weight), network.params[link.name].shape[1], link.each[1])
        columns.append(aligned.index_copy_(1, rows, weight).flatten(1))
    return {"weight": torch.cat(columns, 1), BIAS: head[BIAS]}


def check_head(head: Mapping[str, Tensor], ledger: Ledger, classes: int, what: str) -> None:
    """Raise `ValueError` unless these can be the outputs of a task with this many classes for rotated images."""
    outputs = (ORIENTATIONS - 1) * classes
    shapes: dict[str, tuple[int, ...]] = {BIAS: (outputs,)}
    for link in ledger.blueprint.classifiers:
        units = head.get(f"units/{link.name}", torch.zeros(0))
        exist = units.dim() == 1 and bool(((units >= 0) & (units < ledger.size(link.source))).all())
        if not exist or bool((units != units.trunc()).any() | (units.diff() <= 0).any()):
            raise ValueError(f"{what}: units of {link.source} that do not exist, or are not in order")
        shapes[f"weight/{link.name}"] = outputs, len(units), link.each[1]
    numbers = {name: tensor for name, tensor in head.items() if not name.startswith("units/")}
    check_shapes(numbers, shapes, what)
    check_finite(numbers, dict.fromkeys(shapes, -math.inf), what)


def keep_outputs(head: dict[str, Tensor], classes: int, places: Tensor) -> dict[str, Tensor]:
    """The outputs of some of the task's classes, counted from its first one; nothing if there are none."""
    if not head or not len(places):
        return {}
    rows = torch.cat([places + turn * classes for turn in range(ORIENTATIONS - 1)])
    return {name: each if name.startswith("units/") else each[rows] for name, each in head.items()}
