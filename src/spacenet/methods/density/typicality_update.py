"""What is typical of a class, with more samples of it: they are compared with statistics that did not know them yet.

The distribution of scores that was kept and those of the new samples are mixed. Earlier scores count less than new
ones, because statistics of few samples gave them: after many calls a sample's weight is proportional to how many there
were before it. Where the scale of statistics follows the first task's classes, the scores of classes that get no new
samples change a little; their thresholds stay.
"""

import torch
from torch import Tensor

from spacenet.methods.density.left_out import FEW
from spacenet.methods.density.quantiles import ATOMS, mix, spread_atoms
from spacenet.methods.density.typicality import KNOWN, MARGIN, NUMBERS, add_up, compute_margin, summarize

MOST_BEFORE = 1000
"""What earlier samples weigh at most."""
GAUSSIAN = 4.12
"""The distance of the 5 % quantile of a Gaussian from its median, over the mean of max(0, median - value)."""
FADING = 2
"""A sample's weight is about proportional to the number of those before it to this power less 1."""


def mix_row(row: Tensor, before: float, likeness: Tensor, number: int, wide: float | None) -> Tensor:
    """A class's row of the table, with more samples of it.

    before    the weight of all earlier samples
    likeness  how like all classes the new samples are, (n, classes), by statistics without them
    wide      the least spread where there are few samples; None where likeness is not compared with what is usual
    """
    row, likeness = row.double(), likeness[likeness.isfinite().all(1)]
    if not len(likeness):
        return row.float()
    new = len(likeness)
    weight = min(max((before - (FADING - 1) * new) / FADING, before / 8), MOST_BEFORE)
    own, margin = likeness[:, number], compute_margin(likeness, torch.full((new, 1), number))
    rate, numbers = new / (new + weight), row[: len(NUMBERS)].clone()
    if wide is not None:
        numbers[:2] = follow(numbers[:2], own, rate, wide)
    if wide is not None and float(numbers[MARGIN][1]) > 0:  # else there was no other class when it was learned
        numbers[MARGIN] = follow(numbers[MARGIN], margin, rate, wide)
        numbers[KNOWN] = likeness.shape[1]
    old = spread_atoms(row[len(NUMBERS) :], ATOMS)
    weights = torch.cat([torch.full((ATOMS,), weight / ATOMS), torch.ones(new)]).double()
    return torch.cat([numbers, mix(torch.cat([old, add_up(own, margin, numbers)]), weights)]).float()


def update_typicality(table: Tensor, likeness: Tensor, y: Tensor, counts: Tensor, wide: float | None) -> Tensor:
    """The table with more samples of known classes, of which y, (n,), are the classes; `counts` is the weight of all
    earlier samples of each class."""
    table = table.clone()
    for number in sorted(set(y.tolist())):
        table[number] = mix_row(table[number], float(counts[number]), likeness[y == number], number, wide)
    return table


def follow(usual: Tensor, values: Tensor, rate: float, wide: float) -> Tensor:
    """A median and the distance of the 5 % quantile from it, (2,), moved towards those of more values. Of few values
    the distance is that of a Gaussian with the same mean distance of those below the median."""
    if len(values) >= FEW:
        return torch.lerp(usual, torch.tensor(summarize(values, wide), dtype=torch.double), rate)
    median = torch.lerp(usual[0], values.quantile(0.5), rate)
    spread = torch.lerp(usual[1], (median - values).clamp_min(0.0).mean() * GAUSSIAN, rate)
    return torch.stack([median, spread.clamp_min(1.0)])
