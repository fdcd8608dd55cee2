"""Which method suits data of one's own: `python -m benchmarks.own_data [--sets NAME …] [--json FILE]`.

The data sets of `own_data_sets.py`, raw and unscaled, each learned one and two classes at a time, with the default
settings, in three folds. Beside it what scikit-learn's classifiers reach that see all classes at once (features
standardized; QDA with a little regularization).
"""

import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import spacenet
from benchmarks.command import measured, read_options
from benchmarks.own_data_sets import HELD_OUT, SETS, TUNED
from spacenet.report.tables import Table

Array = np.ndarray[Any, Any]
METHODS = ("spacenet", "gaussian", "spacenet-density")
JOINT: dict[str, Any] = {
    "logistic regression": LogisticRegression(max_iter=2000),
    "QDA": QuadraticDiscriminantAnalysis(reg_param=0.1),
    "LDA": LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
}
"""See all classes at once."""
FOLDS = 3
NEAR = 2.0
"""Points that count as level with a classifier that sees everything."""


@dataclass(frozen=True)
class Options:
    """What to measure."""

    sets: tuple[str, ...] = tuple(SETS)
    """Data sets."""
    json: Path | None = None
    """Keep the raw figures in this file."""


def measure(options: Options, console: Console) -> dict[str, Any]:
    """Measure and print a table; returns the accuracies in percent."""
    rows = []
    for name in options.sets:
        x, y = SETS[name]()
        joint = {title: _joint(model, x, y) for title, model in JOINT.items()}
        for classes in (1, 2):
            found = {method: _learn(method, x, y, classes) for method in METHODS}
            facts = {"data": name, "held_out": name in HELD_OUT, "samples": len(y), "classes_per_task": classes}
            row = {**facts, "joint": joint, **found}
            rows.append(row)
            console.print(" ".join(_cells(row)), highlight=False)
    for title, group in (("sets that defaults were chosen on", TUNED), ("sets held out", HELD_OUT)):
        if own := [row for row in rows if row["data"] in group]:
            console.print(_table(f"Accuracy in %, after the last task: {title}", own))
            console.print(_summary(own), highlight=False)
    return {"date": date.today().isoformat(), "folds": FOLDS, "seed": 0, "rows": rows}


def _folds(x: Array, y: Array) -> Iterator[tuple[Array, Array, Array, Array]]:
    for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(x, y):
        yield x[train], y[train], x[test], y[test]


def _joint(model: Any, x: Array, y: Array) -> float | None:
    """The accuracy of a classifier that sees all classes at once; None where it does not work."""
    flat, scores = x.reshape(len(x), -1), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of collinear columns
        for x_train, y_train, x_test, y_test in _folds(flat, y):
            try:
                fitted = make_pipeline(StandardScaler(), clone(model)).fit(x_train, y_train)
            except np.linalg.LinAlgError:  # more features than samples
                return None
            scores.append(100 * fitted.score(x_test, y_test))
    return float(np.mean(scores))


def _learn(method: str, x: Array, y: Array, classes: int) -> float:
    """The accuracy over all test samples after the last task."""
    scores = []
    for fold in _folds(x, y):
        stream = spacenet.Stream.from_arrays(*fold, classes_per_task=classes)
        result = spacenet.run(stream, method, seed=0, progress=False)
        weights = [len(task.test) for task in stream]
        scores.append(float(np.average(result.matrix[-1], weights=weights)))
    return float(np.mean(scores))


def _best(row: dict[str, Any]) -> float:
    return float(max(score for title, score in row["joint"].items() if score is not None and title != "LDA"))


def _cells(row: dict[str, Any]) -> list[str]:
    joint = [row["joint"][title] for title in JOINT]
    own = [row[method] for method in METHODS]
    texts = ["–" if score is None else f"{score:.1f}" for score in (*own, *joint)]
    return [row["data"], str(row["classes_per_task"]), *texts, f"{own[-1] - _best(row):+.1f}"]


def _table(title: str, rows: Sequence[dict[str, Any]]) -> Table:
    heading = ["data", "classes per task", *METHODS, *JOINT, "default – best of LR and QDA"]
    return Table(title, heading, [_cells(row) for row in rows], "lr" + "r" * 7)


def _summary(rows: Sequence[dict[str, Any]]) -> str:
    """In how many rows the default method falls behind, by at least one sample, and how far at most."""
    default = METHODS[-1]
    alone = [row[default] - max(row[method] for method in METHODS[:-1]) for row in rows]
    joint = [row[default] - _best(row) for row in rows]
    # Folds differ in size: the means of equally many samples may differ by a part of one.
    below = sum(each < -99 / row["samples"] for each, row in zip(alone, rows, strict=True))
    far = sum(each < -NEAR for each in joint)
    return (
        f"{default} is below the better of {' and '.join(METHODS[:-1])} in {below} of {len(rows)} rows "
        f"(worst {min(alone):+.2f}), and more than {NEAR:g} points below the better of logistic regression and QDA in "
        f"{far} (worst {min(joint):+.2f})"
    )


if __name__ == "__main__":
    sys.exit(measured("own_data", read_options(Options, "own_data", None), measure))
