"""Settings of methods that keep statistics of each class, and the representations that they are computed on."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from annotated_types import Ge, Gt, Le
from torch import Tensor

from spacenet.errors import SettingsError
from spacenet.methods.base import MethodSettings
from spacenet.methods.density.densities import Densities
from spacenet.methods.density.edges import extract_edges, supports_edges
from spacenet.methods.density.scaling import pool_roots
from spacenet.space.blueprint import Blueprint, Forward, Params

Representation = Literal["auto", "inputs", "edges", "features"]
SEED = "summaries"
"""The purpose of the random numbers. Part of the seed: another word would change the results."""
LAYERS, GRID = 2, 2
"""Features are the inputs of this many last links; feature maps are averaged over a grid of GRID × GRID cells."""


@dataclass(frozen=True)
class ClassStatisticsSettings(MethodSettings):
    """What is kept of each class."""

    components: Annotated[int, Ge(1)] = 2
    """Gaussians per class."""
    directions: Annotated[int, Ge(1)] = 19
    """Directions per Gaussian in which its variance is kept; in all others it is that of the first task's scale."""
    shrinkage: Annotated[float, Gt(0), Le(1)] = 0.7
    """How far each covariance is shrunk towards the identity: near 0 not at all, 1 completely."""


def build_densities(settings: ClassStatisticsSettings, *, whiten: bool) -> Densities:
    """Class densities with these settings, still empty."""
    return Densities(settings.components, settings.directions, settings.shrinkage, whiten=whiten)


def resolve_representation(kind: Representation, shape: tuple[int, ...]) -> Representation:
    """The representation of samples of this shape, without a network: `auto` is edges for images, otherwise inputs."""
    if kind == "auto":
        return "edges" if supports_edges(shape) else "inputs"
    if kind == "edges" and not supports_edges(shape):
        message = f"samples of the shape {shape} are not images with edges; try inputs"
        raise SettingsError(message, setting="representation")
    return kind


FIXED: dict[str, Callable[[Tensor], Tensor]] = {"inputs": lambda x: x.flatten(1), "edges": extract_edges}
"""Representations that are not learned."""


def extract_features(blueprint: Blueprint, forward: Forward, params: Params, x: Tensor) -> Tensor:
    """The inputs of the network's last links, concatenated: (n, d)."""
    chosen = [link.name for link in blueprint.links[-LAYERS:]]
    entering: dict[str, Tensor] = {}

    def hook(link: str, h: Tensor) -> None:
        if link in chosen:
            entering[link] = pool_roots(h, GRID)

    forward(params, x, hook)
    return torch.cat([entering[name] for name in chosen], 1)
