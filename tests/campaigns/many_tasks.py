"""Learn very many tasks in a network that grows whenever one does not fit.

    python -m tests.campaigns.many_tasks

runs 100 tasks of two classes on an MLP, a small CNN and a WRN, and 1,000 tasks of one class on an MLP. Each has to end
with all tasks learned; the accuracies mean nothing, because the samples are noise.
"""

import argparse
import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

import spacenet

SAMPLES = 3
"""Of each class."""


@dataclass(frozen=True)
class Case:
    """A network, and what it learns."""

    net: str
    tasks: int
    shape: tuple[int, ...]
    hidden: tuple[int, ...] = ()
    classes: int = 2
    """Of each task."""

    def stream(self) -> spacenet.Stream:
        rng, y = np.random.default_rng(0), np.repeat(np.arange(self.classes * self.tasks), SAMPLES)
        x = rng.normal(size=(len(y), *self.shape)).astype(np.float32)
        return spacenet.Stream.from_arrays(x, y, x, y, classes_per_task=self.classes)


CASES = (
    Case("mlp", 100, (8,), (40, 40)),
    Case("small-cnn", 100, (3, 8, 8), (12, 12, 14, 14, 30)),
    Case("wrn-10-1", 100, (3, 8, 8)),
    Case("mlp", 1000, (8,), (40, 40), classes=1),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nets", nargs="*", help="only these")
    parser.add_argument("--most", type=int, help="at most so many tasks")
    options = parser.parse_args()
    failed = 0
    print(f"{'net':12}{'tasks':>6}{'classes':>9}{'learned':>9}{'units added':>13}{'CPU s':>8}")
    for case in CASES:
        if options.nets and case.net not in options.nets:
            continue
        tasks = min(case.tasks, options.most or case.tasks)
        case = Case(case.net, tasks, case.shape, case.hidden, case.classes)
        began = time.process_time()
        settings: dict[str, Any] = {
            "expand": "auto",
            "expected_tasks": 5,
            "epochs": 1,
            "batch_size": 6,
            "progress": False,
        }
        result = spacenet.run(case.stream(), net=case.net, hidden=case.hidden, **settings)
        learned, added = len(result.metrics["tasks"]), result.metrics["units_added"]
        failed += learned != tasks
        seconds = time.process_time() - began
        print(f"{case.net:12}{tasks:6}{case.classes:9}{learned:9}{added:13,}{seconds:8.0f}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
