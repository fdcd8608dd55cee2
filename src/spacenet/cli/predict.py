"""`spacenet predict`: name the class of inputs."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import Annotated, TextIO, cast

import tyro
from tyro.conf import arg

from spacenet.cli.options import MARKERS
from spacenet.data.inputs import Chunk, looks_scaled, read_inputs
from spacenet.errors import DataError, SettingsError
from spacenet.model.file import load_model
from spacenet.model.model import Model
from spacenet.model.predictions import Format, Writer, answers, readable
from spacenet.option_types import Flag, OptionalPath
from spacenet.utils.files import replacing

DESCRIPTION = "Name the class of inputs: one line for each, with the class and its probability."
INPUTS = (
    "What to look at: .npz (its array x, else x_test, else the only one), .npy, .csv (one sample per line), images "
    "(.png .jpg .bmp .webp), folders of images, or - for npy or csv on the standard input."
)


@dataclass(frozen=True)
class PredictOptions:
    """What to ask the model, and how to put its answers."""

    model: Annotated[tyro.conf.Positional[Path], arg(metavar="MODEL", help="A model file.")]
    inputs: Annotated[tyro.conf.Positional[tuple[str, ...]], arg(metavar="INPUT …", help=INPUTS, help_behavior_hint="")]
    format: Format = "text"
    """text: for people; csv; jsonl: one JSON object per line."""
    top: int = 1
    """How many of the most probable classes to name."""
    resize: Flag = False
    """Bring images to the model's size (stretched, if their sides are in another proportion)."""
    out: OptionalPath = None
    """Write to this file instead of the standard output; it is there as a whole or not at all."""


def predict(arguments: list[str]) -> int:
    """Carry out `spacenet predict …`."""
    options = tyro.cli(PredictOptions, prog="spacenet predict", description=DESCRIPTION, args=arguments, config=MARKERS)
    if options.top < 1:
        raise SettingsError(f"top: {options.top} is too small (need 1 or more)")
    if not options.inputs:
        raise SettingsError("give at least one input: a file, a folder, or - for the standard input")
    model = load_model(options.model)
    if model.normalization is None:
        raise DataError("the model has not learned anything yet")
    chunks = read_inputs(options.inputs, model.recipe.input_shape, model.normalization.scale, _stdin(), options.resize)
    if options.out is None:
        _answer(model, chunks, options, sys.stdout)
        return 0
    with _whole(options.out.expanduser()) as file:
        count = _answer(model, chunks, options, file)
    print(f"{count:,} answers are in {readable(options.out)}")
    return 0


def _answer(model: Model, chunks: Iterator[Chunk], options: PredictOptions, out: TextIO) -> int:
    several = len(options.inputs) > 1
    writer = Writer(options.format, model, options.top, several)
    out.write(writer.heading())
    count = 0
    for chunk in chunks:
        if not count and model.normalization and looks_scaled(chunk.x, model.normalization.scale):
            print(
                "spacenet: warning: the model learned from bytes (0 to 255), and these values lie between 0 and 1; "
                "multiply them by 255",
                file=sys.stderr,
            )
        out.write(writer.lines(answers(model, chunk, options.top)))
        out.flush()
        count += len(chunk.x)
    return count


def _stdin() -> BufferedReader:
    """The bytes of the standard input; none where it is closed."""
    return BufferedReader(BytesIO()) if sys.stdin is None else cast(BufferedReader, sys.stdin.buffer)


@contextmanager
def _whole(path: Path) -> Iterator[TextIO]:
    """A file that takes the place of `path` when all is written; otherwise nothing is left of it."""
    if path.is_dir():
        raise SettingsError(f"out: {path} is a folder")
    try:
        with replacing(path) as beside, beside.open("w", encoding="utf-8") as file:
            yield file
    except OSError as error:
        raise SettingsError(f"out: {path} cannot be written ({error.strerror or error})") from error
