"""Which method suits data of one's own: `python -m benchmarks.own_data [--sets NAME …] [--json FILE]`.

Data sets that come with scikit-learn and sktime, raw and unscaled, and two synthetic tables, each learned one and two
classes at a time, with the default settings, in three folds. Beside it what scikit-learn's classifiers reach that see
all classes at once (features standardized; QDA with a little regularization).
"""

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_classification
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import spacenet
from benchmarks.command import measured, read_options
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


def _digit_images() -> tuple[Array, Array]:
    data = load_digits()
    return data.images, data.target


def _letters() -> tuple[Array, Array]:
    """As many classes and features as the letters of UCI, with scales from thousandths to thousands."""
    options: dict[str, Any] = {"n_informative": 12, "n_redundant": 2, "n_clusters_per_class": 1, "class_sep": 2.0}
    x, y = make_classification(6000, 16, n_classes=26, random_state=0, **options)
    return (x + 5) * np.logspace(-3, 3, 16), y


def _clusters() -> tuple[Array, Array]:
    """Four classes of two clusters each."""
    x, y = make_classification(2000, 10, n_informative=6, n_classes=4, class_sep=1.5, random_state=1)
    return x * np.logspace(-2, 2, 10), y


def _series(name: str) -> tuple[Array, Array]:
    """Series of sktime as rows, with zeros after the end of shorter ones."""
    import sktime.datasets

    series, y = getattr(sktime.datasets, f"load_{name}")(return_X_y=True, return_type="nested_univ")
    length = max(len(cell) for column in series.columns for cell in series[column])
    x = np.zeros((len(series), series.shape[1], length))
    for row, cells in enumerate(series.to_numpy()):
        for channel, values in enumerate(cells):
            x[row, channel, : len(values)] = values
    return x.reshape(len(x), -1), np.asarray(y).astype(str)


SETS: dict[str, Callable[[], tuple[Array, Array]]] = {
    "iris": lambda: load_iris(return_X_y=True),
    "wine": lambda: load_wine(return_X_y=True),
    "breast cancer": lambda: load_breast_cancer(return_X_y=True),
    "digits, as a table": lambda: load_digits(return_X_y=True),
    "digits, as images": _digit_images,
    "synthetic letters": _letters,
    "synthetic clusters": _clusters,
    "GunPoint": lambda: _series("gunpoint"),
    "ItalyPowerDemand": lambda: _series("italy_power_demand"),
    "ArrowHead": lambda: _series("arrow_head"),
    "OSULeaf": lambda: _series("osuleaf"),
    "BasicMotions": lambda: _series("basic_motions"),
    "JapaneseVowels": lambda: _series("japanese_vowels"),
}


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
            row = {"data": name, "classes_per_task": classes, "joint": joint, **found}
            rows.append(row)
            console.print(" ".join(_cells(row)), highlight=False)
    console.print(_table(rows))
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


def _table(rows: Sequence[dict[str, Any]]) -> Table:
    heading = ["data", "classes per task", *METHODS, *JOINT, "default – best of LR and QDA"]
    return Table("Accuracy in %, after the last task", heading, [_cells(row) for row in rows], "lr" + "r" * 7)


if __name__ == "__main__":
    sys.exit(measured("own_data", read_options(Options, "own_data", None), measure))
