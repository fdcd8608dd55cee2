"""The inputs of a prediction: files of many kinds, folders, standard input; read lazily, in chunks of samples."""

import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BufferedReader
from itertools import groupby
from pathlib import Path
from typing import Any

from spacenet.data.arrays import Shape, read_csv, read_npy, read_npz
from spacenet.data.images import PIXEL_SCALE, SUFFIXES, ImageFormat, list_images, read_images
from spacenet.data.npy import report_damage
from spacenet.data.preprocessing import Array
from spacenet.errors import DataError

STDIN = "-"
NPY_MAGIC = b"\x93"
"""The first byte of an npy stream; no text begins with it."""
ARRAY_SUFFIXES = (".npz", ".npy", ".csv")


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
    def has_images(self) -> bool:
        return self.kind in ("folder", "image")


def read_inputs(
    names: Sequence[str],
    input_shape: Shape,
    scale: float,
    stdin: "BufferedReader[Any]",
    resize: bool = False,
) -> Iterator[Chunk]:
    """The samples of all inputs in their order, for a model that takes inputs of this shape and scale.

    Whether all inputs exist and are of a known kind is checked at once, before any is read.
    """
    inputs = [_find_input(name) for name in names]
    if sum(each.kind == "stream" for each in inputs) > 1:
        raise DataError("standard input (-) can be given once only")
    image_format = None
    if any(each.has_images for each in inputs):
        image_format = ImageFormat.for_model(input_shape, scale, resize)
    return _read_chunks(inputs, input_shape, image_format, stdin)


def looks_scaled(x: Array, scale: float) -> bool:
    """Whether values lie between 0 and 1 although the model's scale is for bytes (0 to 255): probably a mistake."""
    if scale != PIXEL_SCALE or x.dtype.kind != "f":
        return False
    return bool(((x >= 0) & (x <= 1)).all()) and bool((x % 1 != 0).any())


def _find_input(name: str) -> _Input:
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
    if suffix in ARRAY_SUFFIXES:
        return _Input(name, suffix)
    raise DataError(
        f"{name}: unknown kind of input; use {', '.join((*ARRAY_SUFFIXES, *SUFFIXES))}, a folder, or - (stdin)"
    )


def _read_chunks(
    inputs: Sequence[_Input], shape: Shape, image_format: ImageFormat | None, stdin: "BufferedReader[Any]"
) -> Iterator[Chunk]:
    for has_images, group in groupby(inputs, lambda each: each.has_images):
        if has_images:
            assert image_format is not None
            for paths, x in read_images(_list_paths(group), image_format):
                yield Chunk([str(path) for path in paths], [None] * len(paths), x)
        else:
            for each in group:
                yield from _number_rows(each.name, _read_arrays(each, shape, stdin))


def _list_paths(inputs: Iterator[_Input]) -> Iterator[Path]:
    for each in inputs:
        yield from list_images(each.path) if each.kind == "folder" else (each.path,)


def _number_rows(name: str, arrays: Iterator[Array]) -> Iterator[Chunk]:
    first = 0
    for x in arrays:
        yield Chunk([name] * len(x), range(first, first + len(x)), x)
        first += len(x)


def _read_arrays(source: _Input, shape: Shape, stdin: "BufferedReader[Any]") -> Iterator[Array]:
    if source.kind == ".npz":
        yield from read_npz(source.path, shape)
    elif source.name == STDIN:
        yield from _read_stream(stdin, "standard input", shape)
    else:
        try:
            file = source.path.open("rb")
        except OSError as error:
            raise DataError(f"{source.name}: cannot be read ({error.strerror or error})") from error
        with file:
            if source.kind == "stream":
                yield from _read_stream(file, source.name, shape)
            else:
                yield from (read_npy if source.kind == ".npy" else read_csv)(file, source.name, shape)


def _read_stream(stream: "BufferedReader[Any]", where: str, shape: Shape) -> Iterator[Array]:
    with report_damage(where, "send npy or csv"):
        is_npy = stream.peek(1).startswith(NPY_MAGIC)
    yield from (read_npy if is_npy else read_csv)(stream, where, shape)
