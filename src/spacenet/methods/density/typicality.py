"""How typical a sample is of the class that it is most like: about the fraction of the class's own samples that are
less typical.

Two things are typical of a class: how like it its samples are (`Densities.likeness`), and the margin by which they are
more like it than the other classes. Both are compared with those of samples that were left out of the statistics when
the class was learned, in units of their spread, and added.

What is usual of a likeness stays valid after later tasks. Margins do not: every class that is added may make those of
earlier ones smaller. So the margin of a sample is that to all classes known, and the usual one is the smallest that was
found of the class itself or of others that were compared with more classes.

In the columns of a table, a density is as typical in one class as in another, and margins do not count: a sample is
compared with samples of all classes. Otherwise a broad class would hold most of what lies in the range of the table.
"""

import math
from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from spacenet.methods.density.left_out import FEW, LeftOut
from spacenet.methods.density.quantiles import ATOMS, LEVELS, mix, quantiles, read_fraction, spread_atoms
from spacenet.space.blueprint import Params
from spacenet.space.pack import Pack
from spacenet.utils.tensors import check_finite, check_shapes, in_section, section

MOST_LIKE, MOST_MARGIN = 0.5, 0.0
"""How much a likeness and a margin count at most, in units of their spread, from the median. A larger margin says
nothing: samples of unknown classes far from all known ones have large margins too."""
NUMBERS = ("likeness", "likeness_spread", "margin", "margin_spread", "known")
"""For each class. A spread of margins of 0 says that there was no other class when it was learned: margins say nothing
of its samples. The last one is how many classes its samples were compared with."""
MARGIN, KNOWN = slice(2, 4), 4
TYPICAL, SCALING = "typicality", "scaling"
WHAT, TABLE = "what is typical of classes", "classes"


class Typicality:
    """What is usual of each class's own samples."""

    def __init__(self) -> None:
        self.table = torch.zeros(0, len(NUMBERS) + len(LEVELS))
        """For each class the median and spread of likeness and of margins, then the score at each level."""

    def __len__(self) -> int:
        return len(self.table)

    def add(self, left_out: LeftOut, classes: range, wide: float | None) -> None:
        """Add a task's classes, given samples that were left out of their statistics. Nothing is added where earlier
        classes are missing, or no sample could be left out. `wide` is the least spread where there are few samples;
        None where likeness is not compared with what is usual of it, and margins do not count."""
        if len(self) != classes.start or not len(left_out.y):
            return
        self.table = torch.cat([self.table, measure(left_out, classes, wide)])

    def keep(self, classes: Tensor) -> None:
        """Remove all classes but these."""
        if len(self):
            self.table = self.table[classes]

    def compute_params(self, share: float = 0.0, *, of_all: bool = False) -> dict[str, Tensor]:
        """What `rate_typicality` computes with. `share` is how much of a score at each level is the mean of all
        classes. With `of_all`, scores are compared with those of samples of all classes together."""
        table, known = self.table.double(), self.table[:, KNOWN]
        levels, usual = table[:, len(NUMBERS) :], table[:, MARGIN].clone()
        table[:, len(NUMBERS) :] = _join(levels) if of_all else torch.lerp(levels, levels.mean(0), share)
        for count in known.unique().tolist():
            rows, later = known == count, usual[known > count]
            if count > 1 and len(later):
                least = later[later[:, 0].argmin()]
                table[rows, MARGIN] = torch.where(least[0] < usual[rows][:, :1], least, usual[rows])
        return {"table": table}

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
        impossible = (table[:, 1] < 1) | ((table[:, 3] < 1) & (table[:, 3] != 0)) | (table[:, KNOWN] < 1)
        if bool(impossible.any() | (table[:, len(NUMBERS) :].diff(dim=1) < 0).any()):
            raise ValueError(f"{WHAT}: {TABLE} has values that are not possible")


def rate_typicality(params: Params, likeness: Tensor) -> Tensor:
    """How typical each sample is of the class that it is most like, (n,), between 0 and 1, given how like each class it
    is, (n, classes), in 64 bits. 0 where that is not finite. Made of operations that other runtimes have too."""
    return _rate(params, likeness, likeness.argmax(1, keepdim=True))


def rate_classes(params: Params, likeness: Tensor) -> Tensor:
    """How typical each sample is of each class, (n, classes)."""
    columns = torch.arange(likeness.shape[1], device=likeness.device)
    return torch.stack([_rate(params, likeness, number.expand(len(likeness), 1)) for number in columns], 1)


def rate_with(
    rate: Callable[[Params, Tensor], Tensor],
    likeness: Callable[[Params, Tensor, Tensor], Tensor],
    typical: Params,
    alike: Params,
    *,
    edges: bool,
) -> Pack:
    """(params, representation, what `scores` returned for it) → how typical samples are. The parameters are those of
    `rate` and of `likeness`. With `edges`, images that are the same everywhere are not typical: they are near the
    center of what edges of any image are."""

    def forward(params: Params, h: Tensor, found: Tensor) -> Tensor:
        typicality = rate(section(params, TYPICAL), likeness(section(params, SCALING), h, found))
        if not edges:
            return typicality
        varies = (h != 0).any(1)
        return torch.where(varies if typicality.dim() == 1 else varies[:, None], typicality, 0.0)

    return Pack(forward, in_section(TYPICAL, typical) | in_section(SCALING, alike))


def _rate(params: Params, likeness: Tensor, number: Tensor) -> Tensor:
    """The same for one class of each sample, (n, 1)."""
    row = params["table"][number[:, 0]]
    score = add_up(likeness.gather(1, number)[:, 0], compute_margin(likeness, number), row)
    return torch.where(likeness.isfinite().all(1), read_fraction(score, row[:, len(NUMBERS) :]), 0.0)


def measure(left_out: LeftOut, classes: range, wide: float | None) -> Tensor:
    """The rows of a task's classes in the table. The classes share the usual margin. A class of which no sample could
    be left out gets the mean of the others."""
    likeness = left_out.likeness
    own = likeness.gather(1, left_out.y[:, None])[:, 0]
    margin = compute_margin(likeness, left_out.y[:, None])
    usual = (0.0, 0.0) if wide is None or likeness.shape[1] < 2 else summarize(margin, wide)
    rows: dict[int, Tensor] = {}
    for number in classes:
        if bool((here := left_out.y == number).any()):
            numbers = torch.tensor(
                [*((0.0, 1.0) if wide is None else summarize(own[here], wide)), *usual, classes.stop]
            )
            rows[number] = torch.cat([numbers, quantiles(add_up(own[here], margin[here], numbers))])
    others = torch.stack([*rows.values()]).mean(0)
    return torch.stack([rows.get(number, others) for number in classes]).float()


def compute_margin(likeness: Tensor, number: Tensor) -> Tensor:
    """By how much a sample is more like a class than the others, (n,); the class `number` is given for each sample,
    (n, 1). Infinite where there is only one class."""
    column = torch.arange(likeness.shape[1], device=likeness.device)
    return likeness.gather(1, number)[:, 0] - likeness.masked_fill(column == number, -math.inf).amax(1)


def _join(levels: Tensor) -> Tensor:
    """The score at each level of samples of all classes, each of which counts the same, given those of each class."""
    atoms = torch.stack([spread_atoms(each, ATOMS) for each in levels])
    return mix(atoms.flatten(), torch.ones(atoms.numel(), dtype=torch.double))


def summarize(values: Tensor, wide: float) -> tuple[float, float]:
    """The median and the distance of the 5 % quantile from it, which is at least 1; `wide` where values are few."""
    least = 1.0 if len(values) >= FEW else max(1.0, wide)
    ordered = values.sort().values
    median, low = float(ordered[len(ordered) // 2]), float(ordered[len(ordered) // 20])
    return median, max(least, median - low)


def add_up(likeness: Tensor, margin: Tensor, numbers: Tensor) -> Tensor:
    """The score of samples, (n,): deviations of likeness and margin from what is usual, given a row of the table, or
    one for each sample."""
    usual, spread, usual_margin, margin_spread, _ = numbers[..., : len(NUMBERS)].unbind(-1)
    score = (likeness - usual) / spread
    by_margin = ((margin - usual_margin) / margin_spread.clamp_min(1.0)).clamp_max(MOST_MARGIN)
    return torch.where(margin_spread > 0, score.clamp_max(MOST_LIKE) + by_margin, score)
