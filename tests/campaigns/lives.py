"""Whole lives of random small models: `python -m tests.campaigns.lives --lives 500 --steps 20`, from the root.

A life is a random sequence of steps: learning new and known classes, growing, saving, loading, exporting, being killed
while saving, meeting another writer, bad inputs. After each step all invariants of `tests.campaigns.invariants` must
hold. A life follows from its number; `--seed NUMBER` lives that one again.
"""

import argparse
import logging
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tests.campaigns.life import STEPS, live


@dataclass
class Tally:
    """What has happened in all lives."""

    lives: int = 0
    outcomes: dict[str, Counter[str]] = field(default_factory=lambda: {name: Counter() for name in STEPS})
    problems: list[str] = field(default_factory=list)
    last: tuple[str, int] = ("", 0)
    """The step that was begun last, and how many of its life were."""

    def note(self, step: str, outcome: str) -> None:
        if outcome == "begun":
            self.last = step, self.last[1] + 1
        else:
            self.outcomes[step][outcome] += 1

    def steps(self) -> int:
        return sum(sum(each.values()) for each in self.outcomes.values())

    def rows(self) -> Iterable[str]:
        yield f"{'step':<12}{'times':>7}  outcomes"
        for step, outcomes in self.outcomes.items():
            each = ", ".join(f"{outcome} {count}" for outcome, count in sorted(outcomes.items()))
            yield f"{step:<12}{sum(outcomes.values()):>7}  {each}"


def run(seeds: Iterable[int], steps: int, *, details: bool = False) -> Tally:
    tally = Tally()
    for seed in seeds:
        tally.lives, tally.last = tally.lives + 1, ("birth", 0)
        with tempfile.TemporaryDirectory() as folder:
            try:
                live(seed, steps, Path(folder), tally.note)
            except Exception as error:
                step, number = tally.last
                reason = f"{type(error).__name__}: {error}".partition("\n")[0]
                tally.problems.append(f"life {seed}, step {number} ({step}): {reason}")
                if details:
                    traceback.print_exc()
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lives", type=int, default=500)
    parser.add_argument("--steps", type=int, default=20, help="steps of a life")
    parser.add_argument("--first", type=int, default=0, help="the number of the first life")
    parser.add_argument("--seed", type=int, help="only the life with this number, with the trace of an error")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    seeds = range(options.first, options.first + options.lives) if options.seed is None else [options.seed]
    began = time.monotonic()
    tally = run(seeds, options.steps, details=options.seed is not None)
    for row in tally.rows():
        print(row)
    for problem in tally.problems:
        print("   ", problem)
    seconds = time.monotonic() - began
    print(f"{tally.lives} lives, {tally.steps():,} steps in {seconds:.0f} s, {len(tally.problems)} with a problem")
    return int(bool(tally.problems))


if __name__ == "__main__":
    sys.exit(main())
