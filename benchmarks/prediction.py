"""What a prediction costs: `python -m benchmarks.prediction`, from the repository's root.

The pack against the same network at full width, dense with all its zeros: on Split MNIST's shapes and selection, on the
processor, measured in turns. Then the model file: its size, and how long it takes from the file to the first answer.
"""

import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any, cast

import numpy as np
import torch
from rich.console import Console

from benchmarks.command import measured, read_options
from benchmarks.stepping import after_tasks, alternate
from benchmarks.workload import Workload, WorkloadOptions, stream_of, workload
from spacenet.config.run import RunConfig
from spacenet.data.preprocessing import Array
from spacenet.data.stream import Stream
from spacenet.methods.shared.sparse import SparseMethod
from spacenet.model.file import load_model, save_model
from spacenet.model.labels import Label
from spacenet.model.model import Model
from spacenet.report.tables import Table
from spacenet.space.pack import Pack, cut, pack

Figures = dict[str, Any]
PACKED, DENSE = "packed", "dense"
NETWORK, LABELS = "network alone", "raw values to labels"
BATCHES = (1, 1_000)
LEAST = (1.0, 20.0)
"""How many times faster the pack has to be, at the first of the widths and at the last."""
PROCESSES = 3


@dataclass(frozen=True)
class Options(WorkloadOptions):
    """Predictions of the pack against those of the dense network, and the model file."""

    seconds_per_cell: float = 3.0
    """Time given to each form at each width and batch size."""


def measure(options: Options, console: Console) -> Figures:
    """Measure and print what the options ask for; returns the raw figures."""
    torch.set_num_threads(options.threads)
    figures: Figures = options.conditions()
    figures |= {"speed": [], "file": []}
    with workload(options.threads, options.data_dir, tiny=options.tiny) as work:
        for width in work.step_widths:
            model = learned(work.at(width))
            figures["speed"] += compare(model, width, options.seconds_per_cell)
            figures["file"].append({"width": width, **measure_file(model, options.threads)})
    console.print(speed_table(figures["speed"]))
    console.print(verdict(figures["speed"], work), highlight=False)
    console.print("", file_table(figures["file"]))
    return figures


def learned(config: RunConfig) -> Model:
    """A model that has learned all tasks, a few steps of each: enough to take its space."""
    stream = stream_of(config)
    method = after_tasks(config, stream, list(stream))
    return as_model(config, stream, method, [tuple(task.labels) for task in stream])


def as_model(config: RunConfig, stream: Stream, method: SparseMethod, tasks: Sequence[tuple[Any, ...]]) -> Model:
    """The model that a method has learned from a stream."""
    settings = replace(config.model, preprocessing=stream.resolved_preprocessing)
    return Model(settings, stream.input_shape, stream.normalization, list(tasks), {}, method)


def as_dense(model: Model) -> Model:
    """The same model that predicts with its whole network."""
    dense = replace(model, method=model.build(learned=model.method))
    ledger = dense.method.ledger
    units = {layer.name: torch.arange(ledger.size(layer.name)) for layer in ledger.blueprint.layers}
    cast(SparseMethod, dense.method).pack = Pack(ledger.blueprint.forward, cut(ledger, units), units)
    return dense


def compare(model: Model, width: int, seconds_per_cell: float) -> list[Figures]:
    """Both forms at each batch size: the network alone, and the way that a user's samples go."""
    forms = {PACKED: model, DENSE: as_dense(model)}
    units = {name: len(each) for name, each in pack(model.method.ledger).units.items()}
    figures = []
    for batch in BATCHES:
        raw = samples_like(batch, model)
        apart = np.abs(forms[PACKED].predict_proba(raw) - forms[DENSE].predict_proba(raw)).max()
        if not apart < 1e-4:
            raise AssertionError(f"the forms do not compute the same: probabilities differ by {apart}")
        for part, make in ((NETWORK, _network), (LABELS, to_labels)):
            timings = alternate({form: make(each, raw) for form, each in forms.items()}, seconds_per_cell)
            times = {form: vars(timing) for form, timing in timings.items()}
            ratio = timings[DENSE].ms / timings[PACKED].ms
            figures.append(
                {"width": width, "batch": batch, "part": part, "units": units, "times": times, "ratio": ratio}
            )
    return figures


def samples_like(count: int, model: Model) -> Array:
    """Random samples of the shape that a model takes."""
    return np.random.default_rng(0).integers(0, 256, (count, *model.input_shape), dtype=np.uint8)


def _network(model: Model, raw: Array) -> Callable[[], object]:
    assert model.normalization is not None
    x = model.normalization(raw)
    return lambda: model.method.predict(x)


def to_labels(model: Model, raw: Array) -> Callable[[], list[Label]]:
    """The way that a user's samples go."""
    names = model.classes
    return lambda: [names[number] for number in model.predict_proba(raw).argmax(1)]


def measure_file(model: Model, threads: int) -> Figures:
    """The file's size, and the seconds from the file to the first label, each time in a new process."""
    connections = sum(map(len, model.method.ledger.connections.values()))
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "model.safetensors"
        save_model(path, model)
        size = path.stat().st_size
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), max_tasks_per_child=1) as pool:
            times = [pool.submit(first_answer, path, threads).result() for _ in range(PROCESSES)]
    load, first = (median(each) for each in zip(*times, strict=True))
    return {"bytes": size, "connections": connections, "load_seconds": load, "first_seconds": first}


def first_answer(path: Path, threads: int) -> tuple[float, float]:
    """Seconds to load a model, and to its first label; all modules are imported by then."""
    torch.set_num_threads(threads)
    began = time.perf_counter()
    model = load_model(path)
    loaded = time.perf_counter()
    to_labels(model, np.zeros((1, *model.input_shape), dtype=np.uint8))()
    return loaded - began, time.perf_counter() - loaded


def speed_table(figures: list[Figures]) -> Table:
    """Milliseconds of each form and how many times faster the pack is."""
    rows = [
        [
            f"{f['width']:,}, {f['part']}",
            f"{f['batch']:,}",
            *(f"{f['times'][form]['ms']:.3f}" for form in (PACKED, DENSE)),
            f"{f['ratio']:.2f}",
        ]
        for f in figures
    ]
    columns = ["hidden width", "samples", "packed ms", "dense ms", "dense / packed"]
    return Table("Predicting after all tasks, both forms in turns, median", columns, rows)


def verdict(figures: list[Figures], work: Workload) -> str:
    """The claim, and whether it holds for every row."""
    lines = []
    for width, least in zip((work.step_widths[0], work.step_widths[-1]), LEAST, strict=True):
        worst = min(f["ratio"] for f in figures if f["width"] == width)
        words = "as claimed" if worst >= least else "NOT as claimed"
        lines.append(f"At width {width:,} the pack is at least {worst:.2f} times as fast; {words} ({least:g} or more).")
    return "\n".join(lines)


def file_table(figures: list[Figures]) -> Table:
    """Size and loading time of the model file at each width."""
    rows = [
        [
            f"{f['width']:,}",
            f"{f['connections']:,}",
            f"{f['bytes']:,}",
            f"{f['bytes'] / f['connections']:.2f}",
            f"{1000 * f['load_seconds']:.1f}",
            f"{1000 * f['first_seconds']:.1f}",
        ]
        for f in figures
    ]
    columns = ["hidden width", "connections", "bytes", "bytes / connection", "load ms", "first label ms"]
    return Table("The model file, read in a new process after all imports", columns, rows)


def main(arguments: list[str] | None = None) -> int:
    return measured("prediction", read_options(Options, "prediction", arguments), measure)


if __name__ == "__main__":
    sys.exit(main())
