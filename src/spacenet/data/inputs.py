"""The inputs of a prediction: files of many kinds, folders, standard input; read lazily, in chunks of samples."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from io import BufferedReader
from itertools import groupby
from pathlib import Path
from typing import Any

from spacenet.config.stream import TableConfig
from spacenet.data.arrays import read_npy, read_npz, report_damage
from spacenet.data.features import encode_files
from spacenet.data.images import ImageFormat, list_images, read_images
from spacenet.data.kinds import STDIN, Kind, find_kind
from spacenet.data.parquet import read_parquet
from spacenet.data.parts import Target
from spacenet.data.preprocessing import Array
from spacenet.data.tables import read_csv
from spacenet.data.text_tables import read_texts
from spacenet.encoders.inputs import TextInput
from spacenet.errors import DataError

NPY_MAGIC = b"\x93"
"""The first byte of an npy stream; no text begins with it."""
ReadImages = Callable[[Iterable[Path]], Iterator[tuple[list[Path], Array]]]
IMAGE_KINDS: tuple[Kind, ...] = ("folder", "image")


@dataclass(frozen=True)
class Chunk:
    """Some samples and where each comes from: an input, and the row in it (none for an image)."""

    inputs: Sequence[str]
    rows: Sequence[int | None]
    x: Array


def read_inputs(
    names: Sequence[str], target: Target, stdin: "BufferedReader[Any]", config: TableConfig | None = None
) -> Iterator[Chunk]:
    """The samples of all inputs in their order, for a model that takes this; columns of labels are left out.

    Whether all inputs exist and are of a known kind is checked at once, before any is read.
    """
    kinds = [find_kind(name) for name in names]
    if kinds.count("stream") > 1:
        raise DataError("standard input (-) can be given once only")
    has_images = any(kind in IMAGE_KINDS for kind in kinds)
    read_photos: ReadImages | None = None
    if has_images and target.encoder is not None:
        read_photos = partial(encode_files, target.encoder)
    elif has_images:
        image_format = ImageFormat.for_model(target.shape, target.scale, target.resize)
        read_photos = partial(read_images, image_format=image_format)
    config = config or TableConfig()
    has_texts = target.encoder is not None and isinstance(target.encoder.takes, TextInput)
    read: Callable[..., Iterator[Array]] = read_texts if has_texts else read_csv
    read_table = partial(read, label=config.label, drop=config.dropped, header=config.header)
    tables = partial(_read_arrays, target=target, stdin=stdin, config=config, read_table=read_table)
    return _read_chunks(list(zip(names, kinds, strict=True)), read_photos, tables)


@contextmanager
def _report_unreadable(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DataError(f"{name}: cannot be read ({error.strerror or error})") from error


def _read_chunks(
    inputs: Sequence[tuple[str, Kind]],
    read: ReadImages | None,
    read_arrays: Callable[[str, Kind], Iterator[Array]],
) -> Iterator[Chunk]:
    for has_images, group in groupby(inputs, lambda each: each[1] in IMAGE_KINDS):
        if has_images:
            assert read is not None
            for paths, x in read(_list_paths(group)):
                yield Chunk([str(path) for path in paths], [None] * len(paths), x)
        else:
            for name, kind in group:
                first = 0
                for x in read_arrays(name, kind):
                    yield Chunk([name] * len(x), range(first, first + len(x)), x)
                    first += len(x)


def _list_paths(inputs: Iterator[tuple[str, Kind]]) -> Iterator[Path]:
    for name, kind in inputs:
        path = Path(name).expanduser()
        yield from list_images(path) if kind == "folder" else (path,)


def _read_arrays(
    name: str,
    kind: Kind,
    *,
    target: Target,
    stdin: "BufferedReader[Any]",
    config: TableConfig,
    read_table: Callable[..., Iterator[Array]],
) -> Iterator[Array]:
    path = Path(name).expanduser()
    if name == STDIN:
        yield from _read_stream(stdin, "standard input", target, read_table)
    elif kind == "npz":
        yield from read_npz(path, target.shape_in)
    elif kind == "parquet":
        yield from read_parquet(path, target.shape, config.label, config.dropped)
    else:
        with _report_unreadable(name):
            file = path.open("rb")
        with file:
            if kind == "stream":
                yield from _read_stream(file, name, target, read_table)
            elif kind == "npy":
                yield from read_npy(file, name, target.shape_in)
            else:
                yield from read_table(file, name, target.shape)


def _read_stream(
    stream: "BufferedReader[Any]", where: str, target: Target, read_table: Callable[..., Iterator[Array]]
) -> Iterator[Array]:
    with report_damage(where, "send npy or csv"):
        is_npy = stream.peek(1).startswith(NPY_MAGIC)
    if is_npy:
        yield from read_npy(stream, where, target.shape_in)
    else:
        yield from read_table(stream, where, target.shape)
