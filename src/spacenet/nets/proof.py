"""The proof that a blueprint computes what a module computes, before anything is learned with it."""

import copy
from collections.abc import Mapping
from contextlib import suppress

import torch
from torch import Tensor, nn

from spacenet.nets.graph import Graph, unsupported
from spacenet.nets.populations import Origin, describe
from spacenet.space.blueprint import BATCH_STATS, Blueprint, Link, Params
from spacenet.space.ledger import Connections, Ledger
from spacenet.space.pack import pack

SAMPLES = 6
TOLERANCE = 1e-4
"""The largest difference relative to how much scores vary from sample to sample: sums are taken in another order."""
LEAST_VARIATION = 0.01
"""Relative to the largest score. Where scores vary less, rounding decides what the difference is."""


def prove(module: nn.Module, graph: Graph, input_shape: tuple[int, ...]) -> None:
    """Raise `SettingsError` unless the blueprint with the module's own parameters computes what the module does: at
    full width, in training and not, and packed from a ledger in which one task owns everything."""
    module = copy.deepcopy(module).cpu().float()
    x = torch.randn(SAMPLES, *input_shape, generator=torch.Generator().manual_seed(1))
    blueprint, origins = describe(graph)
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        calibrate(module, x)
        params = read_params(module, origins, blueprint)
        expected = module.eval()(x)
        _compare(expected, blueprint.forward(params, x), "it computes")
        _compare(expected, pack(own_everything(blueprint, params))(x), "one task that owns it all computes")
        for each in module.modules():
            if isinstance(each, nn.modules.dropout._DropoutNd):
                each.p = 0.0  # random numbers cannot be compared
        marks = {layer.name + BATCH_STATS: torch.zeros(0, dtype=torch.bool) for layer in blueprint.layers}
        in_training = {**{name: tensor.clone() for name, tensor in params.items()}, **marks}
        try:
            expected = module.train()(x)
        except ValueError:  # batch norm of single numbers
            return
        if not _is_random(module, x):
            _compare(expected, blueprint.forward(in_training, x), "in training it computes")


def calibrate(module: nn.Module, x: Tensor) -> None:
    """Give batch norm the statistics of these samples. With its initial ones, the signal of a deep network vanishes:
    its scores would be the same for all samples, and comparing them would prove nothing."""
    for each in module.modules():
        if isinstance(each, nn.modules.batchnorm._BatchNorm):
            each.momentum = 1.0
    with suppress(ValueError):  # batch norm of single numbers
        module.train()(x)


def _is_random(module: nn.Module, x: Tensor) -> bool:
    return not torch.equal(module(x), module(x))


def _compare(expected: Tensor, found: Tensor, what: str) -> None:
    varies, largest = (expected - expected.mean(0)).abs().max(), expected.abs().max()
    scale = torch.maximum(varies, LEAST_VARIATION * largest).clamp_min(1e-6)
    difference = float((expected - found).abs().max() / scale)
    if not difference <= TOLERANCE:
        raise unsupported(
            f"the network cannot be described: {what} something else than the module (differs by {difference:.1g})",
            "Please report this with the module.",
        )


def own_everything(blueprint: Blueprint, params: Params) -> Ledger:
    """A ledger in which the first task owns all connections that these parameters have."""
    ledger = Ledger(blueprint)
    output = blueprint.output.name
    ledger.grow(output, len(params[blueprint.classifiers[0].name]))
    for link in blueprint.links:
        targets, sources = params[link.name].shape[:2]
        target, source = (
            each.flatten().int() for each in torch.meshgrid(torch.arange(targets), torch.arange(sources), indexing="ij")
        )
        owner = torch.zeros(targets * sources, dtype=torch.int16)
        ledger.add(link, Connections(source, target, owner, params[link.name].reshape(-1, *link.kernel)))
    ledger.units = {key: params[key].clone() for key in ledger.units}
    return ledger


def read_params(module: nn.Module, origins: Mapping[str, Origin], blueprint: Blueprint) -> dict[str, Tensor]:
    """The module's parameters as those of the blueprint at full width."""
    held = {name: tensor.detach() for name, tensor in [*module.named_parameters(), *module.named_buffers()]}
    params: dict[str, Tensor] = {}
    for link in blueprint.links:
        origin = origins[link.name]
        params[link.name] = _per_connection(link, held[origin.name][:, origin.first : origin.first + origin.count])
    for key, (_, value) in blueprint.unit_values().items():
        origin = origins[key]
        rows = held[origin.name].reshape(origin.of, -1)[origin.first : origin.first + origin.count]
        params[key] = rows.reshape(-1, *value.shape).clone()
    return params


def _per_connection(link: Link, weight: Tensor) -> Tensor:
    (out, enter), area = link.each, weight.shape[2:]
    targets, sources = len(weight) // out, weight.shape[1] // enter
    return weight.reshape(targets, out, sources, enter, *area).transpose(1, 2).reshape(targets, sources, *link.kernel)
