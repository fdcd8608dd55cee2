"""How long reading data of one's own takes, and how much memory: `python -m benchmarks.data`, from the root.

A folder of images and tables of random numbers are generated; each is read in a fresh process, once into memory and
once into a file that is mapped into memory (SPACENET_MEMORY_LIMIT=0), and its tasks are gone through one by one.
"Private" is the part of the peak that no file backs: pages of a mapped file are given up when memory is short.
With `--learn-rows`, a table of that many rows is also learned as a single task, likewise (`spacenet fit`).
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import spacenet
from benchmarks.command import load, measured, read_options
from spacenet.config.stream import DataConfig
from spacenet.data.memory import LIMIT_VARIABLE
from spacenet.data.sources import read_labeled
from spacenet.data.stream import Stream
from spacenet.report.tables import Table

CLASSES, COLUMNS, SIZE, WIDE = 10, 20, 64, 500
MIB = 1024**2
PAUSE = 0.02
STATUS = Path("/proc/self/status")


@dataclass(frozen=True)
class Options:
    """What is generated."""

    images: int = 10_000
    """Images of 64 × 64 pixels, as JPEG files in ten folders."""
    rows: int = 1_000_000
    """Rows of the tables, with 20 columns and a label."""
    learn_rows: int = 0
    """Rows of a table of 500 columns that is learned as one task, in one epoch; 0: none."""
    json: Path | None = None
    """Write the raw figures to this file."""


def measure(options: Options, console: Console) -> dict[str, Any]:
    """Generate the data and read it; returns the raw figures."""
    figures: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        sources = {
            f"{options.images:,} images of {SIZE}×{SIZE}": write_images(folder / "photos", options.images),
            f"CSV, {options.rows:,} rows × {COLUMNS}": write_csv(folder / "table.csv", options.rows),
            f"parquet, {options.rows:,} rows × {COLUMNS}": write_parquet(folder / "table.parquet", options.rows),
        }
        for name, path in sources.items():
            for where, limit in (("memory", "1024"), ("mapped file", "0")):
                figures.append({"data": name, "into": where, **_in_process("--read", path, limit)})
        learned = []
        if options.learn_rows:
            path = write_arrays(folder, options.learn_rows)
            for where, limit in (("memory", "1000000"), ("mapped file", "0")):
                learned.append({"into": where, **_in_process("--learn", path, limit)})
    rows = [
        [each["data"], each["into"], f"{each['seconds']:.1f} s", *(f"{each[k] / MIB:,.0f} MiB" for k in MEMORY)]
        for each in figures
    ]
    heading = ["data", "into", "reading", "samples", "before", "peak", "private", "peak with tasks"]
    console.print(Table("Reading data", heading, rows, "llrrrrrr"))
    if learned:
        shape = f"{options.learn_rows:,} rows × {WIDE}"
        rows = [
            [shape, each["into"], f"{each['seconds']:.1f} s", *(f"{each[k] / MIB:,.0f} MiB" for k in LEARNING)]
            for each in learned
        ]
        console.print(
            Table("Learning one task", ["data", "from", "whole", "samples", "before", "private"], rows, "llrrrr")
        )
    return {"load": load(), "reading": figures, "learning": learned}


def _in_process(action: str, path: Path, limit: str) -> dict[str, Any]:
    """What this module does with data in a fresh process, with this memory limit in MiB."""
    environment = {**os.environ, LIMIT_VARIABLE: limit, "SPACENET_CACHE": str(path.parent / "cache")}
    command = [sys.executable, "-m", "benchmarks.data", action, str(path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


LEARNING = ("samples", "before", "private")
MEMORY = ("samples", "before", "peak", "private", "peak_with_tasks")


def read(path: Path) -> dict[str, Any]:
    """Read one source in this process, and go through its tasks."""
    before, watch = _peak(), _Watch()
    began = time.perf_counter()
    stream = Stream.from_data(path, classes_per_task=2, label=None if path.is_dir() else "label")
    seconds, peak = time.perf_counter() - began, _peak()
    private = watch.stop()
    for task in stream:
        assert len(task.train)
        assert len(task.test)
    data = stream.dataset
    samples = data.x_train.dtype.itemsize * (data.x_train.size + data.x_test.size)
    return dict(zip(("seconds", *MEMORY), (seconds, samples, before, peak, private, _peak()), strict=True))


def learn(path: Path) -> dict[str, Any]:
    """Read an array and learn it as one task, in this process."""
    before, watch, began = _peak(), _Watch(), time.perf_counter()
    classifier = spacenet.SpaceNetClassifier(epochs=1, batch_size=512)
    data = read_labeled([path], DataConfig(label=str(path.with_name("y.npy"))))
    classifier.fit(data.x, data.y)
    seconds = time.perf_counter() - began
    return dict(zip(("seconds", *LEARNING), (seconds, data.x.nbytes, before, watch.stop()), strict=True))


def write_arrays(folder: Path, rows: int) -> Path:
    """A table of 32-bit numbers as an array, and two classes of it as another."""
    rng, labels = np.random.default_rng(0), np.arange(rows) % 2
    x = np.lib.format.open_memmap(folder / "x.npy", "w+", np.float32, (rows, WIDE))
    for first in range(0, rows, 10_000):
        own = labels[first : first + 10_000]
        x[first : first + 10_000] = rng.normal(size=(len(own), WIDE)) + 0.1 * own[:, None]
    x.flush()
    np.save(folder / "y.npy", labels)
    return folder / "x.npy"


def write_images(folder: Path, count: int) -> Path:
    """Random images, with the low frequencies of photos."""
    from PIL import Image

    rng = np.random.default_rng(0)
    for label in range(CLASSES):
        (folder / f"class-{label}").mkdir(parents=True)
    for number in range(count):
        small = Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8))
        small.resize((SIZE, SIZE)).save(folder / f"class-{number % CLASSES}" / f"{number:06}.jpg", quality=90)
    return folder


def write_csv(path: Path, rows: int) -> Path:
    """A table of random numbers, with a header."""
    rng = np.random.default_rng(0)
    with path.open("w", encoding="utf-8") as file:
        file.write(",".join([*(f"x{number}" for number in range(COLUMNS)), "label"]) + "\n")
        for first in range(0, rows, 10_000):
            count = min(10_000, rows - first)
            values, labels = rng.normal(size=(count, COLUMNS)), rng.integers(0, CLASSES, count)
            lines = (",".join([*(f"{v:.6g}" for v in row), str(y)]) for row, y in zip(values, labels, strict=True))
            file.write("\n".join(lines) + "\n")
    return path


def write_parquet(path: Path, rows: int) -> Path:
    """The same kind of table."""
    import pyarrow
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    table = {f"x{number}": rng.normal(size=rows) for number in range(COLUMNS)}
    parquet.write_table(pyarrow.table({**table, "label": rng.integers(0, CLASSES, rows)}), path)
    return path


def _peak() -> int:
    """The most memory that this process has had, in bytes."""
    if STATUS.exists():  # on Linux the other figure is at least that of the process that started this one
        return _status("VmHWM")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _status(name: str) -> int:
    return next(int(line.split()[1]) * 1024 for line in STATUS.read_text().splitlines() if line.startswith(name))


class _Watch:
    """Looks at the private memory of this process from time to time (on Linux)."""

    def __init__(self) -> None:
        self.most, self._ended = 0, threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()

    def _look(self) -> None:
        while STATUS.exists() and not self._ended.wait(PAUSE):
            self.most = max(self.most, _status("RssAnon"))

    def stop(self) -> int:
        self._ended.set()
        self._thread.join()
        return self.most


def main(arguments: list[str] | None = None) -> int:
    given = sys.argv[1:] if arguments is None else arguments
    if given[:1] in (["--read"], ["--learn"]):
        print(json.dumps({"--read": read, "--learn": learn}[given[0]](Path(given[1]))))
        return 0
    return measured("benchmarks.data", read_options(Options, "data", arguments), measure)


if __name__ == "__main__":
    sys.exit(main())
