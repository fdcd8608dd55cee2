"""Runs and comparisons with made-up figures, for pictures of any size."""

from pathlib import Path
from typing import Any, cast

import numpy as np
import torch

from spacenet.config.run import RunConfig
from spacenet.experiments.analysis import Analysis
from spacenet.experiments.batch import Outcome
from spacenet.experiments.comparison import rows
from spacenet.report.comparison_data import ComparisonFacts
from spacenet.report.run_data import RunFacts


def metrics(matrix: list[list[float]], classes: int = 2, **over: Any) -> dict[str, Any]:
    """What metrics.json holds, as far as pictures of accuracy read it."""
    last, learned = matrix[-1], len(matrix)
    lost = [last[i] - matrix[i][i] for i in range(learned - 1)]
    labels = [[str(classes * i + j) for j in range(classes)] for i in range(learned)]
    return {
        "stream": "split-mnist",
        "method": "spacenet",
        "seed": 0,
        "evaluated_on": "test set",
        "acc": sum(last[:learned]) / learned,
        "bwt": sum(lost) / len(lost) if lost else 0.0,
        "task_incremental": {"acc": 99.0},
        "matrix": matrix,
        "tasks": [{"index": i, "labels": each} for i, each in enumerate(labels)],
        "bytes_kept": 1000,
        "parameters": 100,
        "extra_bytes": 0,
        "images_kept": 0,
        "units_added": 0,
        "seconds": 1.0,
    } | over


def random_matrix(tasks: int, seed: int = 0) -> list[list[float]]:
    """Tasks that fade while later ones are learned."""
    source = np.random.default_rng(seed)
    best, loss = source.uniform(70, 100, tasks), source.uniform(0, 0.9, tasks)
    return [
        [float(best[i] * (1 - loss[i] * (j - i) / tasks)) if i <= j else 0.0 for i in range(tasks)]
        for j in range(tasks)
    ]


def run_facts(found: dict[str, Any], confusion: list[list[int]] | None = None) -> RunFacts:
    counts = None if confusion is None else torch.tensor(confusion, dtype=torch.int32)
    return RunFacts(Path("run"), cast(RunConfig, None), found, Analysis(counts, {}, ()), None)


def comparison_facts(*runs: dict[str, Any]) -> ComparisonFacts:
    """A comparison of these runs."""
    table = rows(Outcome(Path(str(number)), run) for number, run in enumerate(runs))
    by_method = {row.method: [run for run in runs if run["method"] == row.method] for row in table}
    return ComparisonFacts("split-mnist", "test set", by_method, table, [])
