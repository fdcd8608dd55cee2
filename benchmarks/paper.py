"""The paper's figures beside ours: do they agree?"""

from collections.abc import Mapping
from typing import Any

from spacenet.utils.significance import LEVEL, welch_p
from spacenet.utils.text import MeanStd

NEAR = 1.0
"""A difference below this many points is agreement, however small the standard deviations are."""
SEEDS = 10
"""The paper's number of seeds where its figures do not come with another."""
HEADING = "against the paper"
RULE = f"""\
The column "{HEADING}" judges ACC and BWT, each in both directions: a figure agrees if the means differ by less
than {NEAR:.0f} point; otherwise ours is above or below the paper's by so many points (above is better, in BWT less
forgetting). "Not significant" is added where chance may explain the difference: Welch's two-sided t-test at
{LEVEL * 100:.0f} %, from the standard deviations and numbers of seeds of both sides. A side without standard
deviation counts with the other's."""


def compare_with_paper(ours: Mapping[str, MeanStd], seeds: int, theirs: Mapping[str, Any]) -> str:
    """Whether ACC and BWT agree with the paper's, as far as it gives them: mean, and standard deviation if known."""
    named = [(key.upper(), ours[key], MeanStd(*theirs[key])) for key in ("acc", "bwt") if key in theirs]
    found = {name: _verdict(own, seeds, papers, theirs.get("seeds", SEEDS)) for name, own, papers in named}
    if len(found) > 1 and len(set(found.values())) == 1:
        return f"both {next(iter(found.values()))}".replace("agrees", "agree")
    return ", ".join(f"{name} {verdict}" for name, verdict in found.items())


def _verdict(ours: MeanStd, seeds: int, theirs: MeanStd, their_seeds: int) -> str:
    difference = ours.mean - theirs.mean
    first = ours if ours.std is not None else MeanStd(ours.mean, theirs.std)
    second = theirs if theirs.std is not None else MeanStd(theirs.mean, ours.std)
    p = welch_p(first, seeds, second, their_seeds)
    if abs(difference) < NEAR:
        return "agrees"
    side = f"{abs(difference):.1f} {'above' if difference > 0 else 'below'}"
    return f"{side} (not significant)" if p is not None and p >= LEVEL else side
