"""What is typical of a class, with more samples of it: they are compared with statistics that did not know them yet.

The distribution of scores that was kept and those of the new samples are mixed. Earlier scores count less than new
ones, because statistics of few samples gave them: after many calls a sample's weight is proportional to how many there
were before it. Where the scale of statistics follows the first task's classes, the scores of classes that get no new
samples change a little; their thresholds stay.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from spacenet.methods.density.typicality import FEW, LEVELS, NUMBERS, add_up, compute_margin, summarize

MOST_BEFORE, ATOMS = 1000, 1000
"""What earlier samples weigh at most, and how many scores stand for their distribution."""
GAUSSIAN = 4.12
"""The distance of the 5 % quantile of a Gaussian from its median, over the mean of max(0, median - value)."""
FADING = 2
"""A sample's weight is about proportional to the number of those before it to this power less 1."""


def mix_row(row: Tensor, before: float, found: Tensor, number: int, known: int, wide: float) -> Tensor:
    """A class's row of the table, with more samples of it.

    before  the weight of all earlier samples
    found   the log-densities of all classes at the new samples, (n, classes), by statistics without them
    known   how many classes there were when the class was learned
    wide    the least spread where there are few samples
    """
    row, found = row.double(), found[found.isfinite().all(1)]
    if not len(found):
        return row.float()
    new = len(found)
    weight = min(max((before - (FADING - 1) * new) / FADING, before / 8), MOST_BEFORE)
    own, others = (torch.full((new, 1), each) for each in (number, known))
    density, margin = found[:, number], compute_margin(found, own, others) if known > 1 else None
    rate = new / (new + weight)
    numbers = torch.cat([follow(row[0:2], density, rate, wide), follow(row[2:4], margin, rate, wide)])
    old = spread_atoms(row[len(NUMBERS) :], ATOMS)
    weights = torch.cat([torch.full((ATOMS,), weight / ATOMS), torch.ones(new)]).double()
    return torch.cat([numbers, mix(torch.cat([old, add_up(density, margin, numbers)]), weights)]).float()


def update_typicality(
    table: Tensor, found: Tensor, y: Tensor, tasks: Sequence[range], counts: Tensor, wide: float
) -> Tensor:
    """The table with more samples of known classes, of which y, (n,), are the classes; `counts` is the weight of all
    earlier samples of each class."""
    table = table.clone()
    for classes in tasks:
        for number in sorted(set(classes) & set(y.tolist())):
            own, before = found[y == number], float(counts[number])
            table[number] = mix_row(table[number], before, own, number, classes.stop, wide)
    return table


def follow(usual: Tensor, values: Tensor | None, rate: float, wide: float) -> Tensor:
    """A median and the distance of the 5 % quantile from it, (2,), moved towards those of more values. Of few values
    the distance is that of a Gaussian with the same mean distance of those below the median."""
    if values is None:
        return usual
    if len(values) >= FEW:
        return torch.lerp(usual, torch.tensor(summarize(values, wide), dtype=torch.double), rate)
    median = torch.lerp(usual[0], values.quantile(0.5), rate)
    spread = torch.lerp(usual[1], (median - values).clamp_min(0.0).mean() * GAUSSIAN, rate)
    return torch.stack([median, spread.clamp_min(1.0)])


def spread_atoms(table: Tensor, count: int) -> Tensor:
    """Scores at evenly spaced levels, given those at `LEVELS`: interpolated, and the lowest one below. What is
    extrapolated there would move further away with every call."""
    level, wanted = torch.tensor(LEVELS, dtype=torch.double), (torch.arange(count, dtype=torch.double) + 0.5) / count
    above = torch.searchsorted(level, wanted)
    low, high = (above - 1).clamp_min(0), above.clamp_max(len(LEVELS) - 1)
    part = (wanted - level[low]) / (level[high] - level[low]).clamp_min(1e-300)
    return torch.lerp(table[low], table[high], part.clamp(0.0, 1.0))


def mix(scores: Tensor, weights: Tensor) -> Tensor:
    """The score at each level of `LEVELS`, of weighted scores."""
    order = scores.argsort()
    ordered, share = scores[order], weights[order] / weights.sum()
    level, place = torch.tensor(LEVELS, dtype=torch.double), share.cumsum(0) - share / 2
    above = torch.searchsorted(place, level).clamp(1, len(scores) - 1)
    part = (level - place[above - 1]) / (place[above] - place[above - 1])
    return torch.lerp(ordered[above - 1], ordered[above], part.clamp(0.0, 1.0))
