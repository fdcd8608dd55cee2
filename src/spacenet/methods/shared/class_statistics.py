"""Settings of methods that keep a summary of each class, and the representations that such a summary can be made on."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from spacenet.errors import SettingsError
from spacenet.methods.base import MethodSettings
from spacenet.methods.density.densities import Densities
from spacenet.methods.density.edges import edges, shows_edges
from spacenet.methods.density.scaling import pooled_roots
from spacenet.space.blueprint import Blueprint, Forward, Params

Kind = Literal["auto", "inputs", "edges", "features"]
LAYERS, GRID = 2, 2
"""Features are what enters the last so many links; of feature maps the means over a grid of so many fields each way."""


@dataclass(frozen=True)
class SummarySettings(MethodSettings):
    """What is kept of each class."""

    components: int = 2
    """Gaussians for each class."""
    directions: int = 19
    """Directions for each Gaussian in which its variance is kept; in all others it is as in the scale of the first
    task."""
    shrinkage: float = 0.7
    """How far each covariance is drawn towards the identity: near 0 not at all, 1 all the way."""

    def __post_init__(self) -> None:
        for name in ("components", "directions"):
            if getattr(self, name) < 1:
                raise SettingsError(f"{name}: {getattr(self, name)} is too small (need 1 or more)")
        if not 0.0 < self.shrinkage <= 1.0:
            raise SettingsError(f"shrinkage: {self.shrinkage} is out of range (need more than 0, at most 1)")


def new_densities(settings: SummarySettings, *, whiten: bool) -> Densities:
    return Densities(settings.components, settings.directions, settings.shrinkage, whiten=whiten)


def fixed_kind(kind: Kind, shape: tuple[int, ...]) -> Kind:
    """`auto` for samples of this shape, where nothing was learned: edges of images, otherwise inputs as they are."""
    if kind == "auto":
        return "edges" if shows_edges(shape) else "inputs"
    if kind == "edges" and not shows_edges(shape):
        raise SettingsError(f"representation: samples of the shape {shape} are no images that show edges; try inputs")
    return kind


FIXED: dict[str, Callable[[Tensor], Tensor]] = {"inputs": lambda x: x.flatten(1), "edges": edges}
"""Representations that nobody learns."""


def features(blueprint: Blueprint, forward: Forward, values: Params, x: Tensor) -> Tensor:
    """What enters the last links of a network, side by side: (n, d)."""
    chosen = [link.name for link in blueprint.links[-LAYERS:]]
    entering: dict[str, Tensor] = {}

    def hook(link: str, h: Tensor) -> None:
        if link in chosen:
            entering[link] = pooled_roots(h, GRID)

    forward(values, x, hook)
    return torch.cat([entering[name] for name in chosen], 1)
