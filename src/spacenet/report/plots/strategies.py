"""Methods by strategy: how each looks in all pictures of a comparison, and whom their titles name."""

from collections.abc import Iterable, Sequence

from spacenet.experiments.comparison import Row
from spacenet.report.plots.plot import colours

BOUND = "Bound"
"""The strategy of methods that only say how low or high one can get."""
KNOWN = ("Architectural", "Rehearsal", "Regularization", BOUND, "Statistical")
SHAPES = "os^DvPX*"


def marks(strategies: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Colour and shape of each strategy, in a fixed order; methods from outside may bring strategies of their own."""
    there = set(strategies)
    known = [*KNOWN, *sorted(there - set(KNOWN))]
    shades = colours(len(known))
    return {name: (shades[number], SHAPES[number % len(SHAPES)]) for number, name in enumerate(known) if name in there}


def leaders(rows: Sequence[Row]) -> tuple[list[str], list[str]]:
    """Methods that keep no old data, and those that do, the most accurate first. Bounds do not compete."""
    racing = [row for row in rows if row.strategy != BOUND] or rows
    ranked = sorted(racing, key=lambda row: -row.acc.mean)
    return [row.method for row in ranked if not row.images], [row.method for row in ranked if row.images]
