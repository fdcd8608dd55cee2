"""What a model is asked about: files of many kinds, folders, standard input; read lazily, as chunks of samples."""

import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BufferedReader
from itertools import groupby
from pathlib import Path
from typing import Any

from spacenet.data.arrays import Shape, read_csv, read_npy, read_npz
from spacenet.data.images import SCALE, SUFFIXES, ImageForm, images_in, read_images
from spacenet.data.npy import damage_reported
from spacenet.data.preprocessing import Array
from spacenet.errors import DataError
from spacenet.model.model import Model

STDIN = "-"
NPY_MAGIC = b"\x93"
"""The first byte of an npy stream; no text begins with it."""
ARRAYS = (".npz", ".npy", ".csv")


@dataclass(frozen=True)
class Chunk:
    """Some samples and where each comes from: an input, and the row in it (none for an image)."""

    inputs: Sequence[str]
    rows: Sequence[int | None]
    x: Array


@dataclass(frozen=True)
class _Input:
    name: str
    kind: str

    @property
    def path(self) -> Path:
        return Path(self.name).expanduser()

    @property
    def plots(self) -> bool:
        return self.kind in ("folder", "image")


def read_inputs(
    names: Sequence[str], model: Model, stdin: "BufferedReader[Any]", resize: bool = False
) -> Iterator[Chunk]:
    """The samples of all inputs in their order. That all are there and of a known kind is checked at once."""
    if model.normalization is None:
        raise DataError("the model has learned nothing yet")
    sources = [_source(name) for name in names]
    if sum(source.kind == "stream" for source in sources) > 1:
        raise DataError("standard input (-) can be given once only")
    shape = model.recipe.input_shape
    form = None
    if any(source.plots for source in sources):
        form = ImageForm.of(shape, model.normalization.scale, resize)
    return _chunks(sources, shape, form, stdin)


def scaled_already(model: Model, x: Array) -> bool:
    """Whether values lie between 0 and 1 where the model learned from bytes (0 to 255): hardly what was meant."""
    if model.normalization is None or model.normalization.scale != SCALE or x.dtype.kind != "f":
        return False
    return bool(((x >= 0) & (x <= 1)).all()) and bool((x % 1 != 0).any())


def _source(name: str) -> _Input:
    if name == STDIN:
        return _Input(name, "stream")
    path = Path(name).expanduser()
    suffix = path.suffix.lower()
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise DataError(f"{name}: cannot be read ({error.strerror or error})") from error
    if stat.S_ISDIR(mode):
        return _Input(name, "folder")
    if stat.S_ISFIFO(mode):
        return _Input(name, "stream")
    if suffix in SUFFIXES:
        return _Input(name, "image")
    if suffix in ARRAYS:
        return _Input(name, suffix)
    raise DataError(
        f"{name}: not a kind of input that is known; there are {', '.join((*ARRAYS, *SUFFIXES))}, - (stdin)"
    )


def _chunks(
    sources: Sequence[_Input], shape: Shape, form: ImageForm | None, stdin: "BufferedReader[Any]"
) -> Iterator[Chunk]:
    for plots, group in groupby(sources, lambda source: source.plots):
        if plots:
            assert form is not None
            for paths, x in read_images(_images(group), form):
                yield Chunk([str(path) for path in paths], [None] * len(paths), x)
        else:
            for source in group:
                yield from _numbered(source.name, _arrays(source, shape, stdin))


def _images(sources: Iterator[_Input]) -> Iterator[Path]:
    for source in sources:
        yield from images_in(source.path) if source.kind == "folder" else (source.path,)


def _numbered(name: str, arrays: Iterator[Array]) -> Iterator[Chunk]:
    first = 0
    for x in arrays:
        yield Chunk([name] * len(x), range(first, first + len(x)), x)
        first += len(x)


def _arrays(source: _Input, shape: Shape, stdin: "BufferedReader[Any]") -> Iterator[Array]:
    if source.kind == ".npz":
        yield from read_npz(source.path, shape)
    elif source.name == STDIN:
        yield from _stream(stdin, "standard input", shape)
    else:
        try:
            file = source.path.open("rb")
        except OSError as error:
            raise DataError(f"{source.name}: cannot be read ({error.strerror or error})") from error
        with file:
            if source.kind == "stream":
                yield from _stream(file, source.name, shape)
            else:
                yield from (read_npy if source.kind == ".npy" else read_csv)(file, source.name, shape)


def _stream(stream: "BufferedReader[Any]", where: str, shape: Shape) -> Iterator[Array]:
    with damage_reported(where, "give npy or csv"):
        npy = stream.peek(1).startswith(NPY_MAGIC)
    yield from (read_npy if npy else read_csv)(stream, where, shape)
