"""k-means, for classes that look different ways."""

import torch
from torch import Generator, Tensor
from torch.nn import functional as F

ROUNDS = 10
SAMPLES = 1000
"""So many are enough to find the centres; the others join the nearest one."""


TINY = 1e-12


def clusters(z: Tensor, count: int, rng: Generator) -> Tensor:
    """For each sample of (n, d) the number of its cluster, from 0 up without gaps; at most `count` of them."""
    count = min(count, len(z))
    if count < 2:
        return torch.zeros(len(z), dtype=torch.long)
    some = z[torch.randperm(len(z), generator=rng)[:SAMPLES]]
    centre = _apart(some, count, rng)
    for _ in range(ROUNDS):
        member = F.one_hot(_nearest(some, centre), count).to(z.dtype)
        size = member.sum(0)[:, None]
        # A cluster that lost its last sample stays where it is.
        centre = torch.where(size > 0, member.T @ some / size.clamp_min(1), centre)
    numbers: Tensor = _nearest(z, centre).unique(return_inverse=True)[1]
    return numbers


def _apart(z: Tensor, count: int, rng: Generator) -> Tensor:
    """Samples that lie apart, to begin with: each is drawn with its squared distance from those before as its chance.

    Arthur, Vassilvitskii: k-means++: The Advantages of Careful Seeding. SODA, 2007.
    """
    chosen = [z[0]]
    distance = (z - z[0]).square().sum(1)
    for _ in range(1, count):
        more = z[torch.multinomial(distance + TINY, 1, generator=rng)[0]]
        distance = torch.minimum(distance, (z - more).square().sum(1))
        chosen.append(more)
    return torch.stack(chosen)


def _nearest(z: Tensor, centre: Tensor) -> Tensor:
    return (z @ centre.T * 2 - centre.square().sum(1)).argmax(1)
