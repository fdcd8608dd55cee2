"""Whether figures that were measured with several seeds differ by more than chance."""

import math
from collections.abc import Mapping

from spacenet.utils.text import MeanStd

LEVEL = 0.05
"""A difference is significant if chance alone gives one as large with a probability below this."""
MIN_SEEDS = 3
"""With fewer seeds, differences are not tested."""
Seeds = Mapping[int, float]
"""A figure for each seed."""


def paired_p(first: Seeds, second: Seeds) -> float | None:
    """The p-value of a two-sided paired t-test over the seeds that both have; None if these are too few."""
    common = first.keys() & second.keys()
    if len(common) < MIN_SEEDS:
        return None
    difference = MeanStd.of([first[seed] - second[seed] for seed in sorted(common)])
    return _two_sided_p(difference.mean, (difference.std or 0.0) / math.sqrt(len(common)), len(common) - 1)


def welch_p(first: MeanStd, seeds: int, second: MeanStd, other_seeds: int) -> float | None:
    """The p-value of Welch's two-sided t-test, which needs no common seeds; None without standard deviations."""
    if first.std is None or second.std is None:
        return None
    parts = first.std**2 / seeds, second.std**2 / other_seeds
    if min(seeds, other_seeds) < 2:  # the standard deviation comes from the other side alone
        freedom = float(max(seeds, other_seeds) - 1)
    else:
        weights = parts[0] ** 2 / (seeds - 1) + parts[1] ** 2 / (other_seeds - 1)
        freedom = sum(parts) ** 2 / weights if weights else 1.0
    return _two_sided_p(first.mean - second.mean, math.sqrt(sum(parts)), freedom)


def seeds_p(first: Seeds, second: Seeds) -> float | None:
    """The p-value of a paired t-test where both have the same seeds; otherwise Welch's, which uses those that one of
    them lacks too. None if there are too few."""
    if first.keys() == second.keys():
        return paired_p(first, second)
    if min(len(first), len(second)) < MIN_SEEDS:
        return None
    one, other = (MeanStd.of(list(each.values())) for each in (first, second))
    return welch_p(one, len(first), other, len(second))


def find_best(figures: Mapping[str, Seeds]) -> list[str]:
    """The name with the largest mean, then all that do not differ from it significantly, in the order given.

    Empty if there is nothing to compare, or if one that has too few seeds might be among them.
    """
    means = {name: MeanStd.of(list(seeds.values())).mean for name, seeds in figures.items() if seeds}
    if len(means) < 2:
        return []
    best = max(means, key=means.__getitem__)
    p_values = {name: seeds_p(figures[best], figures[name]) for name in means if name != best}
    if None in p_values.values():
        return []
    return [best, *(name for name, p in p_values.items() if p is not None and p >= LEVEL)]


def _two_sided_p(difference: float, error: float, freedom: float) -> float:
    if not error:
        return float(difference == 0)
    from scipy.special import stdtr  # slow to import, and most commands need no test

    return 2 * float(stdtr(freedom, -abs(difference) / error))
