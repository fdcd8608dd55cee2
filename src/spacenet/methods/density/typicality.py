"""How typical a sample is of the class that is densest at it: about the fraction of the class's own samples that are
less typical.

Two things are typical of a class: the log-density that it gives its samples, and the margin by which that exceeds those
of the other classes. Both are compared with those of samples that were left out of the statistics when the class was
learned, in units of their spread, and added. Only classes that were known at that time count for the margin, so what
was measured then stays valid after later tasks, without old samples.
"""

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Generator, Tensor

from spacenet.methods.density.densities import Densities
from spacenet.space.blueprint import Params
from spacenet.utils.tensors import check_finite, check_shapes

LEVELS = (
    *(0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4),
    *(0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99),
)
"""Fractions of a class's samples whose largest score is kept."""
LOW, MEDIAN = LEVELS.index(0.05), LEVELS.index(0.5)
MOST_DENSITY, MOST_MARGIN = 0.5, 0.0
"""How much a density and a margin count at most, in units of their spread, from the median. A larger margin says
nothing: samples of unknown classes far from all known ones have large margins too."""
FEW = 20
"""With fewer samples, a spread is at least that of a Gaussian in as many dimensions."""
MOST, MANY_DENSITIES = 1000, 4_000_000
"""Samples of a class that are left out at a time, and densities of all classes that are computed of them in a task."""
TAIL = 3.0
"""Beyond the lowest sample: the change of the fraction's logarithm over a spread, as between 0.5 and 0.05."""
NUMBERS = ("density", "density_spread", "margin", "margin_spread")
WHAT, TABLE = "what is typical of classes", "classes"


class Typicality:
    """What is usual of each class's own samples."""

    def __init__(self) -> None:
        self.table = torch.zeros(0, len(NUMBERS) + len(LEVELS))
        """For each class the median and spread of densities and of margins, then the score at each level."""

    def __len__(self) -> int:
        return len(self.table)

    def add(self, densities: Densities, h: Tensor, y: Tensor, classes: range, rng: Generator) -> None:
        """Add a task's classes, which `densities` knows already, given features (n, d) and labels y of its samples.
        Nothing is added where earlier classes are missing."""
        if len(self) != classes.start:
            return
        params, most = densities.compute_params(), max(FEW, min(MOST, MANY_DENSITIES // (len(classes) * classes.stop)))
        parts: list[tuple[Tensor, Tensor | None]] = []
        for number in classes:
            found = densities.left_out(params, h[y == number], number, most, rng)
            own, known = (torch.full((len(found), 1), each) for each in (number, classes.stop))
            parts.append((found[:, number], compute_margin(found, own, known) if classes.stop > 1 else None))
        self.table = torch.cat([self.table, measure(parts, math.sqrt(h.shape[1] / 2))])

    def keep(self, classes: Tensor) -> None:
        """Remove all classes but these."""
        if len(self):
            self.table = self.table[classes]

    def compute_params(self, tasks: Sequence[range]) -> dict[str, Tensor]:
        """What `rate_typicality` computes with, given the classes of each task."""
        known = torch.tensor([classes.stop for classes in tasks for _ in classes])
        return {"table": self.table.double(), "known": known}

    def tensors(self) -> dict[str, Tensor]:
        return {TABLE: self.table} if len(self) else {}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        self.table = tensors.get(TABLE, Typicality().table)

    @staticmethod
    def check(tensors: Mapping[str, Tensor], classes: int) -> None:
        """Raise `ValueError` if `tensors` cannot have returned this for this number of classes."""
        check_shapes(tensors, {TABLE: (classes, len(NUMBERS) + len(LEVELS))}, WHAT)
        check_finite(tensors, {TABLE: -math.inf}, WHAT)
        table = tensors[TABLE]
        if bool((table[:, 1 : len(NUMBERS) : 2] < 1).any() | (table[:, len(NUMBERS) :].diff(dim=1) < 0).any()):
            raise ValueError(f"{WHAT}: {TABLE} has values that are not possible")


def rate_typicality(params: Params, found: Tensor) -> Tensor:
    """How typical each sample is of its densest class, (n,), between 0 and 1, given the log-densities of all classes,
    (n, classes), in 64 bits. 0 where they are not finite. Made of operations that other runtimes have too."""
    finite, densest = found.isfinite().all(1), found.argmax(1, keepdim=True)
    row, known = params["table"][densest[:, 0]], params["known"][densest]
    margin = compute_margin(found, densest, known)
    score = add_up(found.gather(1, densest)[:, 0], torch.where(known[:, 0] > 1, margin, math.inf), row)
    return torch.where(finite, read_fraction(score, row[:, len(NUMBERS) :]), 0.0)


def measure(parts: Sequence[tuple[Tensor, Tensor | None]], wide: float) -> Tensor:
    """The rows of a task's classes in the table, from the log-densities and margins of samples of each that were left
    out. The classes share the usual margin. `wide` is the least spread where there are few samples."""
    margins = [margin for _, margin in parts if margin is not None]
    usual = summarize(torch.cat(margins), wide) if margins else (0.0, 1.0)
    rows = []
    for density, margin in parts:
        numbers = torch.tensor([*summarize(density, wide), *usual])
        rows.append(torch.cat([numbers, quantiles(add_up(density, margin, numbers))]))
    return torch.stack(rows).float()


def compute_margin(found: Tensor, number: Tensor, known: Tensor) -> Tensor:
    """By how much the log-density of a class exceeds the largest of the others among the first `known` classes, (n,);
    `number` and `known` are given for each sample, (n, 1)."""
    column = torch.arange(found.shape[1], device=found.device)
    others = found.masked_fill((column >= known) | (column == number), -math.inf)
    return found.gather(1, number)[:, 0] - others.amax(1)


def summarize(values: Tensor, wide: float) -> tuple[float, float]:
    """The median and the distance of the 5 % quantile from it, which is at least 1; `wide` where values are few."""
    least = 1.0 if len(values) >= FEW else max(1.0, wide)
    ordered = values.sort().values
    median, low = float(ordered[len(ordered) // 2]), float(ordered[len(ordered) // 20])
    return median, max(least, median - low)


def add_up(density: Tensor, margin: Tensor | None, numbers: Tensor) -> Tensor:
    """The score of samples, (n,): deviations of density and margin from what is usual, given a row of the table, or one
    for each sample."""
    usual, spread, usual_margin, margin_spread = numbers[..., : len(NUMBERS)].unbind(-1)
    score = ((density - usual) / spread).clamp_max(MOST_DENSITY)
    if margin is None:
        return score
    return score + ((margin - usual_margin) / margin_spread).clamp_max(MOST_MARGIN)


def quantiles(scores: Tensor) -> Tensor:
    """The score at each level: a new sample is below it with at most this probability. Levels below those of the lowest
    sample are extrapolated."""
    ordered, count = scores.double().sort().values, len(scores)
    level = torch.tensor(LEVELS, dtype=torch.float64)
    place = (level * (count + 1)).long()
    median, low = ordered[count // 2], ordered[count // 20]
    slope = (median - low).clamp_min(1.0) / TAIL
    beyond = ordered[0] + slope * (level * (count + 1)).clamp_max(1.0).log()
    return torch.where(place > 0, ordered[(place - 1).clamp(0, count - 1)], beyond)


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
