"""Features of a class, for tests of what is kept of it."""

import torch

SHRINKAGE = 0.4


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def some(count: int = 60, dimensions: int = 6, seed: int = 0) -> torch.Tensor:
    stretched = torch.linspace(3.0, 0.3, dimensions)
    return torch.randn(count, dimensions, generator=rng(seed)) * stretched + 1.5
