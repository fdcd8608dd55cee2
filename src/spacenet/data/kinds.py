"""Which kind of data a name stands for: a file by its suffix, a folder, a stream of bytes."""

import stat
from pathlib import Path
from typing import Literal

from spacenet.config.stream import CUSTOM
from spacenet.data.images import SUFFIXES as IMAGES
from spacenet.errors import DataError
from spacenet.registry import STREAMS

Kind = Literal["npz", "npy", "csv", "parquet", "image", "folder", "stream"]
STDIN = "-"
FILES: dict[str, Kind] = {
    ".npz": "npz",
    ".npy": "npy",
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
}
"""The kinds of files with many samples, by suffix."""


def find_kind(name: str | Path) -> Kind:
    """The kind of an input. Raises `DataError` if it cannot be read, or is of no known kind."""
    if str(name) == STDIN:
        return "stream"
    path = Path(name).expanduser()
    suffix = path.suffix.lower()
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise DataError(f"{name}: cannot be read ({error.strerror or error})") from error
    if stat.S_ISDIR(mode):
        return "folder"
    if stat.S_ISFIFO(mode):
        return "stream"
    if suffix in FILES:
        return FILES[suffix]
    if suffix in IMAGES:
        return "image"
    if suffix == ".gz":
        raise DataError(f"{name}: is compressed with gzip; unpack it first, with gunzip")
    known = ", ".join((*FILES, *IMAGES))
    raise DataError(f"{name}: unknown kind of input; use {known}, a folder, or - (stdin)")


def looks_like_data(text: str) -> bool:
    """Whether a text is meant as a file or folder, rather than as the name of a stream."""
    path = Path(text).expanduser()
    return path.suffix.lower() in FILES or len(path.parts) > 1 or path.is_dir()


def source_name(path: Path) -> str:
    """The name of a stream that is made from a file or folder."""
    name = path.stem if path.suffix.lower() in FILES else path.name
    return CUSTOM if not name or name in STREAMS else name
