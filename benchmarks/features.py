"""What learns on an encoder's features: `python -m benchmarks.features [--json FILE]`, from the repository's root.

CIFAR-100 through an encoder, which is computed once and kept in the cache folder. Accuracy over all classes in the end
on the test set, for several methods and cuts into tasks, for classes in another order, and with a few training images
of each class; beside it what the methods keep. The time of a method is that of learning all tasks on this machine, with
features that are there already.
"""

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import spacenet
from benchmarks.command import measured, read_options
from benchmarks.results import hardware
from spacenet.data.stream import Stream
from spacenet.encoders.efficientnet import LITE0
from spacenet.report.tables import Table
from spacenet.utils.text import MeanStd, format_bytes, format_mean_std, plural

CUTS = (20, 10, 5, 1)
ORDER = 1993
"""The seed of another order of classes, as in iCaRL's experiments."""
FEW = (1, 5, 20)
RIVALS: dict[str, dict[str, Any]] = {
    "ncm": {},
    "slda": {},
    "gaussian, first task's scale": {"pooled_covariance": False},
    "gaussian": {},
    "spacenet": {},
    "ranpac, 2000 random features": {},
    "ranpac, 5000 random features": {"random_features": 5000},
}
"""With settings that differ from the defaults. RanPAC was published with 10000 random features."""
DEFAULT = "spacenet-density"


@dataclass(frozen=True)
class Options:
    """What is measured."""

    encoder: str = LITE0.name
    stream: str = "icifar-100"
    data_dir: Path | None = None
    """Folder with the data sets."""
    methods: tuple[str, ...] = (*RIVALS, DEFAULT)
    """Methods at ten classes per task."""
    cuts: tuple[int, ...] = CUTS
    """Classes per task, for the default method."""
    few: tuple[int, ...] = FEW
    """Training images of each class, at ten classes per task."""
    seeds: int = 3
    """Draws of these images."""
    json: Path | None = None
    """Write the raw figures to this file."""


def measure(options: Options, console: Console) -> dict[str, Any]:
    """Measure and print as it goes; returns the raw figures."""
    rows = []
    for row in _rows(options):
        rows.append(row)
        console.print(f"{row['what']}: {_mean(row)}", highlight=False)
    console.print(_table(options, rows))
    return {"date": date.today().isoformat(), "hardware": hardware(), "encoder": options.encoder, "rows": rows}


def _rows(options: Options) -> Iterator[dict[str, Any]]:
    stream = _stream(options, 10)
    for title in options.methods:
        yield _learn(options, f"{title}, 10 classes per task", [stream], title)
    for each in options.cuts:
        if each != 10:
            yield _learn(options, f"{DEFAULT}, {each} per task", [_stream(options, each)], DEFAULT)
    shuffled = _stream(options, 10, ORDER)
    yield _learn(options, f"{DEFAULT}, 10 per task, order {ORDER}", [shuffled], DEFAULT)
    for count in options.few:
        for title in ("ncm", "slda", DEFAULT):
            drawn = [_few(stream, count, seed) for seed in range(options.seeds)]
            yield _learn(options, f"{title}, {plural(count, 'image')} of each class", drawn, title)


def _stream(options: Options, each: int, order: int | None = None) -> Stream:
    found = spacenet.stream(options.stream, classes_per_task=each, shuffle_classes=order, data_dir=options.data_dir)
    return found.with_encoder(options.encoder, progress=True)


def _few(stream: Stream, count: int, seed: int) -> Stream:
    """The same stream with so many training samples of each class."""
    rng, dataset = np.random.default_rng(seed), stream.dataset
    rows = [rng.permutation(np.flatnonzero(dataset.y_train == label))[:count] for label in np.unique(dataset.y_train)]
    chosen = np.sort(np.concatenate(rows))
    data = dataset.x_train[chosen], dataset.y_train[chosen], dataset.x_test, dataset.y_test
    return Stream.from_arrays(*data, classes_per_task=len(stream[0].labels), name="few-images")


def _learn(options: Options, what: str, streams: list[Stream], title: str) -> dict[str, Any]:
    began, method = time.perf_counter(), title.partition(",")[0]
    settings = {"encoder": options.encoder, "progress": False, **RIVALS.get(title, {})}
    results = [spacenet.run(stream, method, **settings) for stream in streams]
    seconds = (time.perf_counter() - began) / len(streams)
    found = [result.metrics["last_acc"] for result in results]
    return {"what": what, "accuracy": found, "kept": results[0].metrics["bytes_kept"], "seconds": round(seconds, 1)}


def _mean(row: dict[str, Any]) -> str:
    figure = MeanStd.of(row["accuracy"])
    return format_mean_std(figure.mean, figure.std)


def _table(options: Options, rows: list[dict[str, Any]]) -> Table:
    cells = [[row["what"], _mean(row), format_bytes(row["kept"]), f"{row['seconds']:.0f} s"] for row in rows]
    return Table(f"{options.stream} on {options.encoder}", ["", "last accuracy %", "kept", "time"], cells)


def main(arguments: list[str] | None = None) -> int:
    return measured("features", read_options(Options, "features", arguments), measure)


if __name__ == "__main__":
    sys.exit(main())
