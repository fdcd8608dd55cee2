"""k-means, for classes that consist of several groups of samples."""

import torch
from torch import Generator, Tensor
from torch.nn import functional as F

ROUNDS = 10
SAMPLES = 1000
"""Centers are computed from at most this many samples; the others join the nearest one."""
TINY = 1e-12


def find_clusters(z: Tensor, count: int, rng: Generator) -> Tensor:
    """The cluster number of each sample of (n, d), from 0 up without gaps; at most `count` clusters."""
    count = min(count, len(z))
    if count < 2:
        return torch.zeros(len(z), dtype=torch.long)
    some = z[torch.randperm(len(z), generator=rng)[:SAMPLES]]
    center = _initial_centers(some, count, rng)
    for _ in range(ROUNDS):
        member = F.one_hot(_nearest(some, center), count).to(z.dtype)
        size = member.sum(0)[:, None]
        # A cluster without samples keeps its center.
        center = torch.where(size > 0, member.T @ some / size.clamp_min(1), center)
    numbers: Tensor = _nearest(z, center).unique(return_inverse=True)[1]
    return numbers


def _initial_centers(z: Tensor, count: int, rng: Generator) -> Tensor:
    """k-means++: each center is drawn with a probability proportional to its squared distance from those before.

    Arthur, Vassilvitskii: k-means++: The Advantages of Careful Seeding. SODA, 2007.
    """
    chosen = [z[0]]
    distance = (z - z[0]).square().sum(1)
    for _ in range(1, count):
        more = z[torch.multinomial(distance + TINY, 1, generator=rng)[0]]
        distance = torch.minimum(distance, (z - more).square().sum(1))
        chosen.append(more)
    return torch.stack(chosen)


def _nearest(z: Tensor, center: Tensor) -> Tensor:
    return (z @ center.T * 2 - center.square().sum(1)).argmax(1)
