"""What 8 bits cost an exported model: `python -m benchmarks.quantized`.

Models are exported as ONNX: one of digits with class statistics, and one of photos, which the program draws, from
pixels on. Beside each file stand the same with weights in 8 bits, as `spacenet export --quantize int8` writes them, and
what onnxruntime.quantization makes of it, dynamically, and statically with ranges of activations from the training
data. Accuracy is measured on test data, time with onnxruntime on one thread; `onnx_predictor.py` has it restore weights
when it loads a file.
"""

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from onnxruntime import quantization
from rich.console import Console

import spacenet
from benchmarks.command import load, measured, read_options
from benchmarks.encoders import draw_photos
from benchmarks.exported import prepare
from spacenet import SpaceNetClassifier
from spacenet.data.preprocessing import Array
from spacenet.encoders.efficientnet import LITE0
from spacenet.model.export import FORMATS, export_model
from spacenet.model.model import Model
from spacenet.model.onnx_predictor import OnnxPredictor
from spacenet.report.tables import Table
from spacenet.utils.text import format_bytes

BATCH = 50
CALIBRATION = 500
"""Training samples that ranges of activations are found on."""


@dataclass(frozen=True)
class Options:
    """What is compared, and on how much."""

    streams: tuple[str, ...] = ("split-mnist",)
    encoder: str = LITE0.name
    photos: int = 1000
    learned: int = 200
    """Photos of these that the model learns, in five classes."""
    epochs: int | None = None
    """Instead of the preset's."""
    data_dir: Path | None = None
    """Folder with the data sets."""
    json: Path | None = None
    """Write the raw figures to this file."""


@dataclass(frozen=True)
class Learned:
    """A model, samples that it has learned, and test samples, as the file takes them."""

    name: str
    model: Model
    known: Array
    x: Array
    y: list[Any]


@dataclass(frozen=True)
class Row:
    """A file."""

    model: str
    weights: str
    bytes: int
    accuracy: float
    milliseconds: float
    """For each sample."""


class Calibration(quantization.CalibrationDataReader):  # type: ignore[misc, unused-ignore]
    """Training samples, a few at a time."""

    def __init__(self, x: Array) -> None:
        self.parts = iter(np.array_split(x, -(-len(x) // BATCH)))

    def get_next(self) -> dict[str, Array] | None:
        return {"input": part} if (part := next(self.parts, None)) is not None else None


def measure(options: Options, console: Console) -> dict[str, Any]:
    """Measure and print; returns the raw figures."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        rows = [row for each in _learned(options, Path(scratch)) for row in _compare(each, Path(scratch))]
    cells = [[r.model, r.weights, format_bytes(r.bytes), f"{r.accuracy:.2f}", f"{r.milliseconds:.3f}"] for r in rows]
    columns = ["model", "weights", "size", "accuracy %", "ms per sample"]
    console.print(Table("ONNX files in 32 and in 8 bits", columns, cells, "llrrr"))
    return {"date": date.today().isoformat(), "rows": [asdict(row) for row in rows], "load": load()}


def _learned(options: Options, scratch: Path) -> Iterator[Learned]:
    given: dict[str, Any] = {} if options.epochs is None else {"epochs": options.epochs}
    folder: dict[str, Any] = {} if options.data_dir is None else {"data_dir": options.data_dir}
    for name in options.streams:
        model = spacenet.run(name, "spacenet-density", progress=False, **given, **folder).model
        assert model is not None
        data = spacenet.stream(name, **folder).dataset
        known, x = (np.asarray(part, dtype=np.float32) for part in (data.x_train[:CALIBRATION], data.x_test))
        yield Learned(name, model, known, x, np.asarray(data.y_test).tolist())
    files = sorted(draw_photos(scratch / "photos", options.photos).rglob("*.jpg"), key=lambda path: int(path.stem))
    x, y = prepare(options.encoder, files), [int(path.parent.name[-1]) for path in files]
    first = options.learned
    classifier = SpaceNetClassifier(encoder=options.encoder, **given).fit(x[:first], y[:first])
    yield Learned("photos", classifier.model_, x[:first], x[first:], y[first:])


def _compare(each: Learned, scratch: Path) -> Iterator[Row]:
    """The file, and the same quantized in several ways."""
    whole, small = scratch / "whole.onnx", scratch / "small.onnx"
    export_model(each.model, whole, "onnx")
    yield _row(each, "32 bits", whole, FORMATS["onnx"].load(whole)[0])
    export_model(each.model, small, "onnx", quantize="int8")
    yield _row(each, "8 bits: --quantize int8", small, FORMATS["onnx"].load(small)[0])
    yield _row(each, "8 bits: --quantize int8, onnx_predictor.py", small, OnnxPredictor(small, threads=1))
    options: dict[str, Any] = {"per_channel": True, "op_types_to_quantize": ["Conv", "MatMul", "Gemm"]}
    ways = {
        "8 bits: dynamic": partial(quantization.quantize_dynamic, whole, small, **options),
        "8 bits: static": partial(
            quantization.quantize_static, whole, small, Calibration(each.known[:CALIBRATION]), **options
        ),
    }
    for name, write in ways.items():
        write()
        yield _row(each, name, small, FORMATS["onnx"].load(small)[0])


def _row(each: Learned, weights: str, path: Path, answer: Callable[[Array], dict[str, Array]] | OnnxPredictor) -> Row:
    ask = answer.predict_proba if isinstance(answer, OnnxPredictor) else lambda x: answer(x)["probabilities"]
    ask(each.x[:1])
    began = time.perf_counter()
    found = np.concatenate([ask(part).argmax(1) for part in np.array_split(each.x, -(-len(each.x) // BATCH))])
    seconds = time.perf_counter() - began
    right = np.mean([each.model.classes[number] == label for number, label in zip(found, each.y, strict=True)])
    return Row(each.name, weights, path.stat().st_size, 100 * float(right), 1000 * seconds / len(each.x))


def main(arguments: list[str] | None = None) -> int:
    return measured("quantized", read_options(Options, "quantized", arguments), measure)


if __name__ == "__main__":
    sys.exit(main())
