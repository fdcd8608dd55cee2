"""Features of samples, computed by an encoder and kept in the cache folder: what was computed once is read again.

Each encoder has a file there, an SQLite database of features by the hash of what they were computed from. Several
processes may use it at once; what was interrupted goes on from what is in it. All files together are bounded.
"""

import hashlib
import logging
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from spacenet.data.dataset import Dataset
from spacenet.data.fetch import cache_root
from spacenet.data.images import Damage, ImageFormat, decode_images
from spacenet.data.memory import allocate
from spacenet.data.parts import Batch, Part
from spacenet.data.preprocessing import Array
from spacenet.encoders.encoder import Encoder
from spacenet.errors import DataError, FileError, SettingsError
from spacenet.utils.files import make_folder
from spacenet.utils.progress import track

log = logging.getLogger("spacenet")
LIMIT_VARIABLE = "SPACENET_FEATURES_LIMIT"
DEFAULT_LIMIT = 4096
"""MiB of features that are kept of all encoders together."""
SHARE = 4
"""Where the limit is exceeded, one part in so many is removed, the oldest first."""
CHUNK = 64
"""Samples that are encoded and kept at a time: at most so many are computed again after an interruption."""
QUERY = 500
"""Hashes that are looked up at a time."""
WAIT = 30.0
"""Seconds to wait for another process that writes."""


def cache_limit() -> int:
    """The bytes of features that are kept at most; 0 keeps none."""
    given = os.environ.get(LIMIT_VARIABLE) or str(DEFAULT_LIMIT)
    if not given.isdecimal():
        raise SettingsError(f"the environment variable {LIMIT_VARIABLE} is {given!r}; give a number of MiB, e.g. 4096")
    return int(given) * 1024**2


class FeatureCache:
    """What an encoder has computed before. A cache that cannot be used is as good as none: features are computed."""

    def __init__(self, encoder: Encoder) -> None:
        self.features, self.limit = encoder.features, cache_limit()
        name = hashlib.sha256(encoder.identity.encode()).hexdigest()[:24]
        self.path = cache_root() / "features" / f"{name}.sqlite"
        self.usable = self.limit > 0 and bool(encoder.checksum)  # a function has no weights to know it by

    def find(self, keys: Sequence[bytes]) -> dict[bytes, Array]:
        """The features that are there."""
        if not self.usable or not self.path.is_file():
            return {}
        rows: list[tuple[bytes, Any]] = []

        def look_up(base: sqlite3.Connection) -> None:
            for first in range(0, len(keys), QUERY):
                part = keys[first : first + QUERY]
                marks = ",".join("?" * len(part))
                rows.extend(base.execute(f"SELECT key, content FROM features WHERE key IN ({marks})", part))

        self._use(look_up)
        found = {}
        for key, content in rows:
            if isinstance(content, bytes) and len(content) == 4 * self.features:
                values = np.frombuffer(content, "<f4")
                if np.isfinite(values).all():
                    found[key] = values
        return found

    def keep(self, keys: Sequence[bytes], features: Array) -> None:
        """Add features, as a whole or not at all."""
        if not self.usable:
            return
        rows = [(key, row.astype("<f4").tobytes()) for key, row in zip(keys, features, strict=True)]

        def add(base: sqlite3.Connection) -> None:
            base.execute("CREATE TABLE IF NOT EXISTS features (key BLOB PRIMARY KEY, content BLOB)")
            base.executemany("INSERT OR REPLACE INTO features VALUES (?, ?)", rows)

        try:
            make_folder(self.path.parent)
        except FileError as error:
            self._give_up(error)
        else:
            self._use(add)
            self._bound()

    def _bound(self) -> None:
        """Remove other encoders' files, the longest unused first, then this one's oldest features."""

        def remove_oldest(base: sqlite3.Connection) -> None:
            (count,) = base.execute("SELECT COUNT(*) FROM features").fetchone()
            oldest = "SELECT rowid FROM features ORDER BY rowid LIMIT ?"
            base.execute(f"DELETE FROM features WHERE rowid IN ({oldest})", (max(1, count // SHARE),))
            base.commit()
            base.execute("VACUUM")

        with suppress(OSError):
            files = {path: path.stat() for path in self.path.parent.glob("*.sqlite")}
            total = sum(each.st_size for each in files.values())
            for path in sorted(files, key=lambda path: files[path].st_mtime):
                if total > self.limit and path != self.path:
                    total -= files[path].st_size
                    path.unlink()
            if total > self.limit:
                self._use(remove_oldest)

    def _use(self, act: Callable[[sqlite3.Connection], None]) -> None:
        """Do something with the database and commit it. An error ends its use; a damaged file is removed."""
        try:
            with closing(sqlite3.connect(self.path, timeout=WAIT)) as base:
                act(base)
                base.commit()
        except sqlite3.Error as error:
            if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
                with suppress(OSError):
                    self.path.unlink()
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        self.usable = False
        log.warning("spacenet: warning: features are not kept in %s (%s)", self.path.parent, error)


def encode_samples(
    encoder: Encoder, x: Array, progress: bool = False, *, keep: bool = True, threads: int | None = None
) -> Array:
    """The features of raw samples, (n, features); unless `keep` the cache is not used. For threads, see `encode`."""
    encoder.check(x)
    cache, device = FeatureCache(encoder), find_device()
    cache.usable = cache.usable and keep
    found = allocate((len(x), encoder.features), np.dtype(np.float32), "features")
    with track(f"encoding with {encoder.name}", len(x), "samples", progress) as advance:
        for first in range(0, len(x), CHUNK):
            part = np.asarray(x[first : first + CHUNK])
            keys = [_hash_sample(sample) for sample in part]
            known = cache.find(keys)
            missing = [row for row, key in enumerate(keys) if key not in known]
            if missing:
                values = encoder.encode(encoder.takes.prepare(part[missing]), device, threads)
                _add(cache, known, [keys[row] for row in missing], values)
            found[first : first + len(part)] = [known[key] for key in keys]
            advance(len(part))
    return found


def encode_files(
    encoder: Encoder, files: Iterable[Path], damage: Damage | None = None
) -> Iterator[tuple[list[Path], Array]]:
    """The features of image files in chunks, and the files they come from. Known files are not decoded."""
    cache, device = FeatureCache(encoder), find_device()
    image_format = image_format_of(encoder)
    left = iter(files)
    while chunk := list(islice(left, CHUNK)):
        keys = {path: _hash_file(path) for path in chunk}
        known = cache.find(list(keys.values()))
        missing = [path for path in chunk if keys[path] not in known]
        if missing:
            decoded, images = decode_images(missing, image_format, damage)
            _add(cache, known, [keys[path] for path in decoded], encoder.encode(images, device))
        kept = [path for path in chunk if keys[path] in known]
        if kept:
            yield kept, np.stack([known[keys[path]] for path in kept])


def encode_part(part: Part, encoder: Encoder) -> Part:
    """Labeled samples with features in place of raw samples; what has the shape of features already stays."""
    if part.shape == (encoder.features,):
        return part

    def read() -> Iterator[Batch]:
        for x, labels in part.read():
            yield encode_samples(encoder, x), labels

    return replace(part, shape=(encoder.features,), dtype=np.dtype(np.float32), read=read, columns=None)


def encode_dataset(dataset: Dataset, encoder: Encoder, progress: bool = False) -> Dataset:
    """The data set with features in place of raw samples; what has the shape of features already stays."""
    if dataset.encoder == encoder.name:
        return dataset
    if dataset.encoder:
        raise SettingsError(f"the samples are features of {dataset.encoder} already", setting="encoder")
    parts = [dataset.x_train, dataset.x_test]
    if dataset.x_train.shape[1:] != (encoder.features,):
        parts = [encode_samples(encoder, x, progress) for x in parts]
    x_train, x_test = parts
    return replace(dataset, x_train=x_train, x_test=x_test, scale=1.0, mean=None, std=None, encoder=encoder.name)


def image_format_of(encoder: Encoder) -> ImageFormat:
    """The format of the image files that an encoder takes."""
    if encoder.images is None:
        raise DataError(f"the encoder {encoder.name} takes {encoder.takes.needs}; these are images")
    return ImageFormat.for_encoder(encoder.images)


def find_device() -> torch.device:
    """Where samples are encoded."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def _add(cache: FeatureCache, known: dict[bytes, Array], keys: Sequence[bytes], values: Array) -> None:
    cache.keep(keys, values)
    known |= dict(zip(keys, values, strict=True))


def _hash(kind: str, content: bytes) -> bytes:
    return hashlib.sha256(kind.encode() + b"\n" + content).digest()


def _hash_sample(sample: Any) -> bytes:
    if isinstance(sample, str):
        return _hash("text", sample.encode())
    return _hash(f"{sample.dtype.str} {sample.shape}", sample.tobytes())


def _hash_file(path: Path) -> bytes:
    """The hash of a file's content; of one that cannot be read, that of its name: decoding it says what is wrong."""
    try:
        return _hash("file", path.read_bytes())
    except OSError:
        return _hash("unreadable", str(path).encode())
