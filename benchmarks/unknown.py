"""How well samples of unknown classes are found: `python -m benchmarks.unknown [--json FILE]`, from the root.

Images are learned two classes at a time with the settings of their preset, tables one class at a time with the defaults
of the estimator; some classes are never taught. On test samples, after all tasks: how often those of known classes are
called unknown (false alarms), those of the first task among them, and how well those of unknown classes are found.
Beside it noise, constant and huge inputs: how many of them are called unknown; of noise also, how many would be at the
threshold that gives exactly the wanted false alarms on these very test samples. Noise in the range of a small table may
look like its classes: for tables, also how much of it a support vector machine finds that is trained on such noise, at
such a threshold.

With `--encoder efficientnet-lite0` also CIFAR-100 on the features of an encoder, which takes minutes the first time: 50
classes, ten at a time, in the order of their numbers and in another one, are learned from 150 images each, and the
others are unknown. With `--tuned FOLDER` the encoder is tuned first, on the other 350 images of each of the 50 classes,
which are then learned at once, as a first task; the tuned encoders are kept in the folder. That takes two minutes on a
GPU, and many hours elsewhere.
"""

import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import spacenet
from benchmarks.command import measured, read_options
from spacenet.data.dataset import Dataset
from spacenet.data.features import encode_samples
from spacenet.data.preprocessing import Array
from spacenet.encoders.encoder import Encoder
from spacenet.encoders.loading import load_encoder
from spacenet.model.estimator import SpaceNetClassifier
from spacenet.model.model import Model
from spacenet.model.unknown import Detection
from spacenet.report.tables import Table

SAMPLES, SPLITS, NOISE = 200, 5, 3000
"""Strange inputs of each kind, random halves of each table, and noise that a classifier is trained on."""
TASKS = "0,1/2,3/4,5/6,7"
COLUMNS = {
    "auroc": "AUROC",
    "false_alarms": "false alarms %",
    "first_task": "first task %",
    "found": "found %",
    "noise": "noise %",
    "noise_at_rate": "noise at the rate %",
    "bound": "trained on noise %",
    "constant": "constant %",
    "huge": "huge %",
}
HUGE = 1e15
KNOWN, AT_A_TIME, ORDER, TRAIN, TEST = 50, 10, 1993, 150, 40
"""Of CIFAR-100: classes that are learned, and at a time, another order of them, and images of each that are used."""
EPOCHS = 15
"""Of tuning."""
TABLES = {"wine": load_wine, "breast cancer": load_breast_cancer}


@dataclass(frozen=True)
class Options:
    """What is measured."""

    rate: float = 0.05
    """The false-alarm rate that is wanted."""
    epochs: int | None = None
    """Instead of the presets'."""
    data_dir: Path | None = None
    """Folder with the data sets."""
    streams: tuple[str, ...] = ("split-mnist", "split-fashion-mnist", "split-digits")
    """Whose classes 8 and 9 are never taught."""
    encoder: str | None = None
    """Measure CIFAR-100 on its features, too."""
    at_a_time: int | None = None
    """Classes of CIFAR-100 that are learned at a time; default: 10, or all 50 where the encoder is tuned on them."""
    tuned: Path | None = None
    """Tune the encoder on the known classes, and keep it in this folder; what is there already is used."""
    learn_tuned: bool = False
    """Learn from images that the encoder was tuned on, to see what that does to the threshold."""
    size: int = 224
    """The side of the images that it is tuned on."""
    json: Path | None = None
    """Write the raw figures to this file."""


@dataclass(frozen=True)
class Learned:
    """A model, and test samples of known and unknown classes."""

    data: str
    model: Model
    x: Array
    y: Array
    unknown: tuple[int, ...]
    strange: dict[str, Array] | None = None
    """Inputs that are of no class, where they are not made from `x`."""
    taught: Array | None = None
    """The rows of a table that the model was trained on."""


def measure(options: Options, console: Console) -> dict[str, Any]:
    """Measure and print; returns the raw figures."""
    torch.set_num_threads(1)
    rows = [_figures(each, options.rate) for each in _learned(options)]
    found = {row["data"]: [other for other in rows if other["data"] == row["data"]] for row in rows}
    table = Table(
        f"Samples of unknown classes, wanted false alarms {100 * options.rate:g} %",
        ["data", *COLUMNS.values()],
        [[data, *(_mean(own, name) for name in COLUMNS)] for data, own in found.items()],
        "l" + "r" * len(COLUMNS),
    )
    console.print(table)
    return {"date": date.today().isoformat(), "rate": options.rate, "rows": rows}


def _mean(rows: list[dict[str, Any]], name: str) -> str:
    if any(row[name] is None for row in rows):
        return ""
    mean = float(np.mean([row[name] for row in rows]))
    return f"{mean:.3f}" if name == "auroc" else f"{mean:.1f}"


def _learned(options: Options) -> Iterator[Learned]:
    given: dict[str, Any] = {} if options.epochs is None else {"epochs": options.epochs}
    folder: dict[str, Any] = {} if options.data_dir is None else {"data_dir": options.data_dir}
    for name in options.streams:
        model = spacenet.run(name, "spacenet-density", tasks=TASKS, progress=False, **given, **folder).model
        assert model is not None
        data = spacenet.stream(name, **folder).dataset
        yield Learned(f"{name} without 8, 9", model, np.asarray(data.x_test), np.asarray(data.y_test), (8, 9))
    for name, load in TABLES.items():
        x, y = load(return_X_y=True)
        for unknown in np.unique(y).tolist():
            yield from _learn_table(f"{name} without {unknown}", x, y, unknown, given)
    if options.encoder is not None:
        yield from _learn_features(options, spacenet.stream("icifar-100", **folder).dataset, given)


def _learn_table(what: str, x: Array, y: Array, unknown: int, given: dict[str, Any]) -> Iterator[Learned]:
    """A classifier of the other classes, one task each, for each random half of the table."""
    for seed in range(SPLITS):
        halves = train_test_split(x, y, test_size=0.5, stratify=y, random_state=seed)
        x_train, x_test, y_train, y_test = (np.asarray(each) for each in halves)
        classifier = SpaceNetClassifier(**given)
        for number in np.unique(y_train[y_train != unknown]):
            classifier.partial_fit(x_train[y_train == number], y_train[y_train == number])
        taught = x_train[y_train != unknown]
        yield Learned(what, classifier.model_, x_test, y_test, unknown=(unknown,), taught=taught)


def _learn_features(options: Options, data: Dataset, given: dict[str, Any]) -> Iterator[Learned]:
    """A classifier of half of the classes, on features of some images of each class, for each order of classes."""
    for order in (None, ORDER):
        numbers = np.arange(100) if order is None else np.random.RandomState(order).permutation(100)
        known, name = numbers[:KNOWN], str(options.encoder)
        if options.tuned is not None:
            name = str(_tune(options, options.tuned, data, known, order))
        at_a_time = options.at_a_time or (KNOWN if options.tuned else AT_A_TIME)
        first = TRAIN if options.learn_tuned else 0
        (x_train, y_train), (x_test, y_test), made = _encode(load_encoder(name), data, known, first)
        classifier = SpaceNetClassifier(encoder=name, **given)
        for own in known.reshape(-1, at_a_time):
            rows = np.isin(y_train, own)
            classifier.partial_fit(x_train[rows], y_train[rows])
        tuned = "" if options.tuned is None else ", tuned"
        what = f"CIFAR-100, {options.encoder}{tuned}, {'in order' if order is None else f'order {order}'}"
        yield Learned(what, classifier.model_, x_test, y_test, tuple(numbers[KNOWN:].tolist()), made)


def _tune(options: Options, folder: Path, data: Dataset, known: Array, order: int | None) -> Path:
    """The file of the encoder, tuned on the images of the known classes that are not learned from."""
    path = folder / f"{options.encoder}-{options.size}-{order}.pt2"
    if not path.exists():
        y = np.asarray(data.y_train)
        rows = np.concatenate([np.flatnonzero(y == number)[TRAIN:] for number in known])
        folder.mkdir(parents=True, exist_ok=True)
        how: dict[str, Any] = {"epochs": EPOCHS, "size": options.size, "mirror": True}
        how |= {"precision": "bf16"} if torch.cuda.is_available() else {}
        print(spacenet.tune_encoder((np.asarray(data.x_train[rows]), y[rows]), options.encoder, path, **how))
    return path


def _encode(
    network: Encoder, data: Dataset, known: Array, first: int
) -> tuple[tuple[Array, Array], tuple[Array, Array], dict[str, Array]]:
    """Features and classes of some training images of each known class, from this one on, and of test images of all
    classes; and features of strange images."""
    parts, images = [], np.empty(0)
    train, test = (known, slice(first, first + TRAIN)), (np.unique(data.y_test), slice(TEST))
    for samples, labels, (classes, part) in ((data.x_train, data.y_train, train), (data.x_test, data.y_test, test)):
        y = np.asarray(labels)
        rows = np.sort(np.concatenate([np.flatnonzero(y == number)[part] for number in classes]))
        images = np.asarray(samples[rows])
        parts.append((encode_samples(network, images, threads=1), y[rows]))
    strange = {name: np.rint(x).astype(np.uint8) for name, x in _strange(images).items() if name != "huge"}
    made = {name: encode_samples(network, x, threads=1) for name, x in strange.items()}
    return parts[0], parts[1], made | {"huge": _strange(parts[1][0])["huge"]}


def _figures(each: Learned, rate: float) -> dict[str, Any]:
    """What is measured of one model."""
    model, known = each.model, ~np.isin(each.y, each.unknown)
    typicality = np.concatenate([model.typicality(part) for part in np.array_split(each.x, -(-len(each.y) // 1000))])
    first = np.isin(each.y, np.array(model.tasks[0]))
    strange = _strange(each.x[known]) if each.strange is None else each.strange
    return {
        "data": each.data,
        **asdict(Detection.of(typicality, known, rate)),
        "first_task": 100 * float((typicality[first] < rate).mean()),
        "bound": None if each.taught is None else _bound(each.taught, each.x[known], strange["noise"], rate),
        "noise_at_rate": 100
        * float((model.typicality(strange["noise"]) < np.quantile(typicality[known], rate)).mean()),
        **{name: 100 * float((model.typicality(x) < rate).mean()) for name, x in strange.items()},
    }


def _bound(taught: Array, known: Array, noise: Array, rate: float) -> float:
    """How much noise a classifier finds that is trained on noise too, in percent, where it calls this fraction of the
    known test samples unknown."""
    low, high = taught.min(0), taught.max(0)
    drawn = low + np.random.default_rng(1).random((NOISE, taught.shape[1])) * (high - low)
    machine = make_pipeline(StandardScaler(), SVC(C=10, class_weight="balanced"))
    machine.fit(np.concatenate([taught, drawn]), np.repeat([1, 0], [len(taught), NOISE]))
    limit = np.quantile(machine.decision_function(known), rate)
    return 100 * float((machine.decision_function(noise) < limit).mean())


def _strange(x: Array) -> dict[str, Array]:
    """Inputs that are of no class, in the range of samples: each value drawn by itself, all the same, and huge ones."""
    rng, values = np.random.default_rng(0), x.reshape(len(x), -1).astype(np.float64)
    low, high = values.min(0), values.max(0)
    if x.ndim > 2:  # pixels share a range
        low, high = np.full_like(low, low.min()), np.full_like(high, high.max())
    made = {"noise": low + rng.random((SAMPLES, len(low))) * (high - low)}
    made["constant"] = np.repeat(np.linspace(low.min(), high.max(), SAMPLES)[:, None], len(low), 1)
    made["huge"] = np.where(rng.random((SAMPLES, values.shape[1])) < 0.5, -HUGE, HUGE)
    return {name: part.reshape(SAMPLES, *x.shape[1:]) for name, part in made.items()}


def main(arguments: list[str] | None = None) -> int:
    return measured("unknown", read_options(Options, "unknown", arguments), measure)


if __name__ == "__main__":
    sys.exit(main())
