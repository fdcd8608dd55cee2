"""How good probabilities and sets of classes are: `python -m benchmarks.calibration [--json FILE]`, from the root.

Images are learned with the settings of their preset, tables one class at a time with the defaults of the estimator. On
test samples, after all tasks: accuracy, the mean confidence and the expected calibration error (ECE, 15 bins) without
and with calibration; then sets of classes, of which nine of ten should have the sample's class: how often they do, in
the first task and in the worst class too, and how many classes they have.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.model_selection import StratifiedKFold

import spacenet
from benchmarks.command import measured, read_options
from spacenet.data.preprocessing import Array
from spacenet.methods.spacenet_density import SpaceNetDensity
from spacenet.model.estimator import SpaceNetClassifier
from spacenet.model.model import Model
from spacenet.model.scores import Calibration
from spacenet.report.tables import Table

COLUMNS = {
    "accuracy": "accuracy %",
    "plain": "ECE without",
    "ece": "ECE",
    "confidence": "confidence %",
    "coverage": "sets right %",
    "first_task": "first task %",
    "worst": "worst class %",
    "size": "classes in a set",
}
TABLES = {"wine": load_wine, "breast cancer": load_breast_cancer}
FOLDS, AT_A_TIME = 5, 1000
Tested = tuple[Model, Array, Array]
"""A model, and samples that it did not learn from with their labels."""


@dataclass(frozen=True)
class Options:
    """What is measured."""

    coverage: float = 0.9
    """The fraction of samples whose set should have their class."""
    seeds: int = 3
    """Seeds of each stream."""
    epochs: int | None = None
    """Instead of the presets'."""
    data_dir: Path | None = None
    """Folder with the data sets."""
    streams: tuple[str, ...] = ("split-mnist", "split-fashion-mnist", "split-digits")
    """Of images."""
    json: Path | None = None
    """Write the raw figures to this file."""


def measure(options: Options, console: Console) -> dict[str, Any]:
    """Measure and print; returns the raw figures."""
    torch.set_num_threads(1)
    found: dict[str, list[dict[str, float]]] = {}
    for name, parts in _tested(options):
        found.setdefault(name, []).append(_figures(parts, options.coverage))
    rows = [
        [name, *(f"{np.mean([each[column] for each in own]):.2f}" for column in COLUMNS)] for name, own in found.items()
    ]
    title = f"Calibration in points, and sets for {100 * options.coverage:g} % of the samples"
    console.print(Table(title, ["data", *COLUMNS.values()], rows, "l" + "r" * len(COLUMNS)))
    return {"date": date.today().isoformat(), "coverage": options.coverage, "data": found}


def _tested(options: Options) -> Iterator[tuple[str, list[Tested]]]:
    """Each stream with each seed, and each table with its folds."""
    given: dict[str, Any] = {} if options.epochs is None else {"epochs": options.epochs}
    folder: dict[str, Any] = {} if options.data_dir is None else {"data_dir": options.data_dir}
    for name in options.streams:
        data = spacenet.stream(name, **folder).dataset
        for seed in range(options.seeds):
            model = spacenet.run(name, "spacenet-density", seed=seed, progress=False, **given, **folder).model
            assert model is not None
            yield name, [(model, np.asarray(data.x_test), np.asarray(data.y_test))]
    for name, load in TABLES.items():
        x, y = load(return_X_y=True)
        yield name, list(_learn_folds(x, y, given))


def _learn_folds(x: Array, y: Array, given: dict[str, Any]) -> Iterator[Tested]:
    for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(x, y):
        classifier = SpaceNetClassifier(**given)
        for label in np.unique(y):
            rows = train[y[train] == label]
            classifier.partial_fit(x[rows], y[rows])
        yield classifier.model_, x[test], y[test]


def _figures(parts: list[Tested], coverage: float) -> dict[str, float]:
    """What is measured of the samples of all parts together."""
    each = [_predict(*part, coverage) for part in parts]
    y, probabilities, plain, sets, first = (np.concatenate(column) for column in zip(*each, strict=True))
    right = probabilities.argmax(1) == y
    calibrated = Calibration.of(probabilities.max(1), right)
    within = sets[np.arange(len(y)), y]
    return {
        "accuracy": 100 * float(right.mean()),
        "plain": Calibration.of(plain.max(1), plain.argmax(1) == y).ece,
        "ece": calibrated.ece,
        "confidence": calibrated.mean_confidence,
        "coverage": 100 * float(within.mean()),
        "first_task": 100 * float(within[first].mean()),
        "worst": 100 * min(float(within[y == number].mean()) for number in np.unique(y)),
        "size": float(sets.sum(1).mean()),
    }


def _predict(model: Model, x: Array, y: Array, coverage: float) -> tuple[Array, ...]:
    """The class of each sample by its number, probabilities with and without calibration, sets, and which samples are
    of the first task."""
    assert isinstance(model.method, SpaceNetDensity)
    factor, chunks = model.method.calibration.factor, np.array_split(x, -(-len(x) // AT_A_TIME))
    scores = np.concatenate([model.class_scores(part) for part in chunks])
    plain = torch.from_numpy(scores / factor).softmax(1).numpy()
    sets = np.concatenate([model.predict_set(part, coverage) for part in chunks])
    numbers = np.array([model.classes.index(label) for label in y.tolist()])
    return numbers, np.exp(scores), plain, sets, np.isin(y, np.array(model.tasks[0]))


def main(arguments: list[str] | None = None) -> int:
    return measured("calibration", read_options(Options, "calibration", arguments), measure)


if __name__ == "__main__":
    sys.exit(main())
