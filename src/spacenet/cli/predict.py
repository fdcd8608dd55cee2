"""`spacenet predict`: predict the class of inputs."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import Annotated, TextIO, cast

import tyro
from annotated_types import Ge
from tyro.conf import arg

from spacenet.cli.forms import ModelArgument, UnknownOption, parse
from spacenet.cli.output import output_file
from spacenet.config.stream import TableConfig
from spacenet.data.inputs import Chunk, read_inputs
from spacenet.errors import SettingsError
from spacenet.model.file import load_model
from spacenet.model.model import Model
from spacenet.model.predictions import Format, Writer, predict_chunk, warn_of_scale
from spacenet.model.unknown import check_coverage, check_rate
from spacenet.utils.files import atomic_write
from spacenet.utils.text import printable

INPUTS = (
    "What to look at: .npz (its array x, else x_test, else the only one), .npy, .csv (one sample per line), .parquet, "
    "images (.png .jpg .bmp .webp), folders of images, or - for npy or csv on the standard input. A model with an "
    "encoder takes arrays of images as bytes, or of features."
)

SET_HELP = (
    "Print also the set of classes that each input may be of. It has the right one for this fraction of the inputs of "
    "each class, e.g. 0.9, and is empty for inputs that are like no class."
)


@dataclass(frozen=True)
class PredictOptions(TableConfig):
    """Predict the class of inputs: one line for each, with the class and its probability."""

    model: ModelArgument
    inputs: Annotated[tyro.conf.Positional[tuple[str, ...]], arg(metavar="INPUT …", help=INPUTS, help_behavior_hint="")]
    format: Format = "text"
    """text: for people; csv; jsonl: one JSON object per line."""
    top: Annotated[int, Ge(1)] = 1
    """How many of the most probable classes to print."""
    resize: bool = False
    """Resize images to the model's size (stretched, if their proportions differ)."""
    unknown: UnknownOption = None
    set_: Annotated[float | None, arg(name="set", metavar="COVERAGE", help=SET_HELP, help_behavior_hint="")] = None
    out: Path | None = None
    """Write to this file instead of the standard output; it is written whole or not at all."""


def predict(arguments: list[str]) -> int:
    options = parse(PredictOptions, arguments, "predict")
    if not options.inputs:
        raise SettingsError("give at least one input: a file, a folder, or - for the standard input")
    model = load_model(options.model)
    target = model.target(options.resize)
    stdin = BufferedReader(BytesIO()) if sys.stdin is None else cast(BufferedReader, sys.stdin.buffer)  # None: closed
    chunks = read_inputs(options.inputs, target, stdin, options)
    if options.out is None:
        _write(model, chunks, options, sys.stdout)
        return 0
    out = output_file(options.out, inputs=[options.model, *options.inputs])
    with atomic_write(out) as beside, beside.open("w", encoding="utf-8") as file:
        count = _write(model, chunks, options, file)
    print(f"{count:,} predictions are in {printable(options.out)}")
    return 0


def _write(model: Model, chunks: Iterator[Chunk], options: PredictOptions, out: TextIO) -> int:
    rate, coverage = check_rate(options.unknown), options.set_ if options.set_ is None else check_coverage(options.set_)
    several, marks = len(options.inputs) > 1, {"unknown": rate is not None, "sets": coverage is not None}
    writer = Writer(options.format, model, options.top, several, **marks)
    out.write(writer.heading())
    count = 0
    for chunk in chunks:
        if not count:
            warn_of_scale(model, chunk.x)
        out.write(writer.lines(predict_chunk(model, chunk, options.top, rate, coverage)))
        out.flush()
        count += len(chunk.x)
    return count
