"""Distributions of scores, kept as the score at fixed levels: what part of them is below a score, and mixtures."""

import torch
from torch import Tensor

LEVELS = (
    *(0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4),
    *(0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99),
)
"""Fractions of a class's samples whose largest score is kept."""
LOW, MEDIAN = LEVELS.index(0.05), LEVELS.index(0.5)
TAIL = 3.0
"""Beyond the lowest sample: the change of the fraction's logarithm over a spread, as between 0.5 and 0.05."""
ATOMS = 1000
"""How many scores stand for a distribution."""


def quantiles(scores: Tensor) -> Tensor:
    """The score at each level: a new sample is below it with this probability. Levels below that of the lowest sample
    are extrapolated."""
    ordered, count = scores.double().sort().values, len(scores)
    level = torch.tensor(LEVELS, dtype=torch.float64)
    place = level * (count + 1) - 1  # among the ordered scores, counted from 0
    low = place.floor().long().clamp(0, count - 1)
    between = torch.lerp(ordered[low], ordered[(low + 1).clamp_max(count - 1)], (place - low).clamp(0.0, 1.0))
    slope = (ordered[count // 2] - ordered[count // 20]).clamp_min(1.0) / TAIL
    beyond = ordered[0] + slope * (level * (count + 1)).clamp_max(1.0).log()
    return torch.where(place >= 0, between, beyond)


def read_fraction(score: Tensor, table: Tensor) -> Tensor:
    """The fraction of samples below each score, given the scores at all levels for each, (n, levels): interpolated, and
    extrapolated below."""
    level = torch.tensor(LEVELS, dtype=torch.float64, device=score.device)
    above = (table <= score[:, None]).sum(1, keepdim=True)
    low, high = (above - 1).clamp_min(0), above.clamp_max(len(LEVELS) - 1)
    least, width = table.gather(1, low), table.gather(1, high) - table.gather(1, low)
    part = torch.where(width > 0, (score[:, None] - least) / width.clamp_min(1e-300), 0.0).clamp(0.0, 1.0)
    inside = level[low] + (level[high] - level[low]) * part
    slope = (table[:, MEDIAN] - table[:, LOW]).clamp_min(1.0) / TAIL
    below = level[0] * ((score - table[:, 0]) / slope).clamp_max(0.0).exp()
    return torch.where(above[:, 0] > 0, inside[:, 0], below)


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
