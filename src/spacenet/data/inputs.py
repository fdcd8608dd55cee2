"""The inputs of a prediction: files of many kinds, folders, standard input; read lazily, in chunks of samples."""

import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from spacenet.data.arrays import Shape, read_csv, read_npy, read_npz, report_damage, split_into_chunks
from spacenet.data.images import SUFFIXES, ImageFormat, list_images, read_image
from spacenet.data.preprocessing import Array
from spacenet.errors import DataError

STDIN = "-"
NPY_MAGIC = b"\x93"
"""The first byte of an npy stream; no text begins with it."""
ARRAY_SUFFIXES = (".npz", ".npy", ".csv")
IMAGE_KINDS = ("folder", "image")


@dataclass(frozen=True)
class Chunk:
    """Some samples and where each comes from: an input, and the row in it (none for an image)."""

    inputs: Sequence[str]
    rows: Sequence[int | None]
    x: Array


def read_inputs(
    names: Sequence[str], input_shape: Shape, scale: float, stdin: "BufferedReader[Any]", resize: bool = False
) -> Iterator[Chunk]:
    """The samples of all inputs in their order, for a model that takes inputs of this shape and scale.

    Whether all inputs exist and are of a known kind is checked at once, before any is read.
    """
    kinds = [_find_kind(name) for name in names]
    if kinds.count("stream") > 1:
        raise DataError("standard input (-) can be given once only")
    has_images = any(kind in IMAGE_KINDS for kind in kinds)
    image_format = ImageFormat.for_model(input_shape, scale, resize) if has_images else None
    return _read_chunks(list(zip(names, kinds, strict=True)), input_shape, image_format, stdin)


def _find_kind(name: str) -> str:
    if name == STDIN:
        return "stream"
    path = Path(name).expanduser()
    suffix = path.suffix.lower()
    with _report_unreadable(name):
        mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        return "folder"
    if stat.S_ISFIFO(mode):
        return "stream"
    if suffix in (*SUFFIXES, *ARRAY_SUFFIXES):
        return "image" if suffix in SUFFIXES else suffix
    if suffix == ".gz":
        raise DataError(f"{name}: is compressed with gzip; unpack it first, with gunzip")
    known = ", ".join((*ARRAY_SUFFIXES, *SUFFIXES))
    raise DataError(f"{name}: unknown kind of input; use {known}, a folder, or - (stdin)")


@contextmanager
def _report_unreadable(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DataError(f"{name}: cannot be read ({error.strerror or error})") from error


def _read_chunks(
    inputs: Sequence[tuple[str, str]], shape: Shape, image_format: ImageFormat | None, stdin: "BufferedReader[Any]"
) -> Iterator[Chunk]:
    for has_images, group in groupby(inputs, lambda each: each[1] in IMAGE_KINDS):
        if has_images:
            assert image_format is not None
            for paths in split_into_chunks(_list_paths(group), shape):
                x = np.stack([read_image(path, image_format) for path in paths])
                yield Chunk([str(path) for path in paths], [None] * len(paths), x)
        else:
            for name, kind in group:
                first = 0
                for x in _read_arrays(name, kind, shape, stdin):
                    yield Chunk([name] * len(x), range(first, first + len(x)), x)
                    first += len(x)


def _list_paths(inputs: Iterator[tuple[str, str]]) -> Iterator[Path]:
    for name, kind in inputs:
        path = Path(name).expanduser()
        yield from list_images(path) if kind == "folder" else (path,)


def _read_arrays(name: str, kind: str, shape: Shape, stdin: "BufferedReader[Any]") -> Iterator[Array]:
    if name == STDIN:
        yield from _read_stream(stdin, "standard input", shape)
    elif kind == ".npz":
        yield from read_npz(Path(name).expanduser(), shape)
    else:
        with _report_unreadable(name):
            file = Path(name).expanduser().open("rb")
        with file:
            read = {".npy": read_npy, ".csv": read_csv}.get(kind, _read_stream)
            yield from read(file, name, shape)


def _read_stream(stream: "BufferedReader[Any]", where: str, shape: Shape) -> Iterator[Array]:
    with report_damage(where, "send npy or csv"):
        is_npy = stream.peek(1).startswith(NPY_MAGIC)
    yield from (read_npy if is_npy else read_csv)(stream, where, shape)
