"""The one door for labeled data: files and folders, for a new model, or for one that exists.

    model = load_model(path)
    target = model.target()
    labeled = read_labeled(["more.csv"], DataConfig(label="species"), target=target, progress=True)
    labeled.x, labeled.y                  all samples with labels (the training part)
    labeled.x_test, labeled.y_test        the test part that was given or split off; None without one
    labeled.for_evaluation()              the test part if there is one, else all

`read_dataset` makes the `Dataset` of a stream from a file or folder, and always has a test part. What is in memory
already (arrays, data frames, data sets of other libraries) comes through `spacenet.data.user_data`; inputs without
labels are read by `spacenet.data.inputs`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from spacenet.config.stream import DataConfig, StreamConfig
from spacenet.data.array_parts import npy_part, npz_parts, npz_test_part
from spacenet.data.dataset import Dataset
from spacenet.data.features import encode_part
from spacenet.data.folders import ImageSize, folder_parts
from spacenet.data.kinds import FILES, find_kind
from spacenet.data.parquet import parquet_part
from spacenet.data.parts import Part, Target, check_alike, read_parts
from spacenet.data.preprocessing import Array
from spacenet.data.tables import csv_part
from spacenet.data.text_tables import text_part
from spacenet.data.user_data import DEFAULT_FRACTION, make_dataset
from spacenet.encoders.encoder import Encoder
from spacenet.encoders.inputs import ImageInput, TextInput
from spacenet.errors import DataError, SettingsError
from spacenet.registry import unknown

__all__ = ["LabeledData", "Target", "read_dataset", "read_labeled"]


@dataclass(frozen=True)
class LabeledData:
    """Samples with labels, and if there is one, a test part."""

    x: Array
    y: Array
    x_test: Array | None = None
    y_test: Array | None = None
    checksum: str = ""
    """Of all samples and labels."""

    def for_evaluation(self) -> tuple[Array, Array]:
        """The test part if there is one, else all."""
        if self.x_test is None or self.y_test is None:
            return self.x, self.y
        return self.x_test, self.y_test


def read_labeled(
    sources: Sequence[str | Path],
    config: DataConfig | None = None,
    *,
    target: Target | None = None,
    image_size: ImageSize = None,
    encoder: Encoder | None = None,
    images: ImageInput | None = None,
    progress: bool = False,
) -> LabeledData:
    """Read files and folders with labels, one after the other.

    Parameters
    ----------
    sources : sequence of str or Path
        .npz (x_train and y_train, or x and y; x_test and y_test are the test part), .npy with a second .npy as
        ``config.label``, .csv and .parquet with the column ``config.label``, folders with one sub-folder per class.
    config : DataConfig
        The label's column, and a test part.
    target : Target, optional
        The shape and scale of inputs that a model takes; by default they follow from the data.
    image_size : int or (int, int), optional
        Resize images to this height and width; a target has its own.
    encoder : Encoder, optional
        Compute features of images; a target has its own.
    images : ImageInput, optional
        Prepare images in folders for an encoder that takes such images, instead of computing features.
    progress : bool
        Show a bar, or lines in the log.
    """
    if encoder is not None and image_size is not None:
        raise SettingsError(f"the encoder {encoder.name} takes images of its own size", setting="image_size")
    reader = _Reader(config or DataConfig(), target, image_size, progress, encoder=encoder, images=images)
    parts, tests = reader.open([Path(source).expanduser() for source in sources])
    for part in tests:
        check_alike(parts[0], part)
    x, y, checksum = read_parts(parts, progress)
    if tests:
        x_test, y_test, more = read_parts(tests, progress)
        return LabeledData(x, y, x_test, y_test, f"{checksum:08x}{more:08x}")
    if reader.config.test_fraction is None:
        return LabeledData(x, y, checksum=f"{checksum:08x}")
    split = make_dataset(parts[0].where, x, y, x, y).hold_out(
        reader.config.test_fraction, reader.config.split_seed or 0
    )
    return LabeledData(split.x_train, split.y_train, split.x_test, split.y_test, f"{checksum:08x}")


def read_for_evaluation(
    sources: Sequence[str | Path], config: DataConfig, target: Target, progress: bool = False
) -> tuple[Array, Array, Sequence[str]]:
    """The samples and labels to evaluate a model on: of each file or folder its test part, else all of it. Also the
    names of a table's inputs, if it has a header."""
    reader = _Reader(config, target, None, progress, test_only=True)
    pairs = [reader.open_one(Path(source).expanduser()) for source in sources]
    parts = [part if test is None else test for part, test in pairs]
    x, y, _ = read_parts(parts, progress)
    return x, y, parts[0].columns or ()


def read_dataset(config: StreamConfig, progress: bool = False, encoder: Encoder | None = None) -> Dataset:
    """The data set in the user's file or folder: with its test part, or with one that is split off."""
    assert config.data is not None
    found = read_labeled([config.data], config, image_size=config.image_size, encoder=encoder, progress=progress)
    test = found.for_evaluation()
    dataset = make_dataset(str(config.data), found.x, found.y, *test, checksum=found.checksum)
    dataset = replace(dataset, encoder="" if encoder is None else encoder.name)
    if found.x_test is None:
        dataset = dataset.hold_out(DEFAULT_FRACTION, config.split_seed or 0)
    return replace(dataset, name=config.name)


def data_settings(given: dict[str, Any]) -> dict[str, Any]:
    """Settings of reading as a configuration has them: columns as text, a size as a tuple, paths without links."""
    plain = dict(given)
    known = [*DataConfig.__dataclass_fields__, "image_size"]
    for name, value in given.items():
        if name not in known:
            raise unknown("setting", name, known)
        if name in ("label", "drop") and value is not None:
            plain[name] = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
        elif name == "image_size" and isinstance(value, int | list):
            plain[name] = (value,) if isinstance(value, int) else tuple(value)
        elif name == "test" and value is not None:
            plain[name] = Path(value).expanduser().resolve()
    return plain


@dataclass(frozen=True)
class _Reader:
    """Opens files and folders; what they hold is read later."""

    config: DataConfig
    target: Target | None
    image_size: ImageSize
    progress: bool
    test_only: bool = False
    """Whether of an archive with a test part only that is needed."""
    encoder: Encoder | None = None
    images: ImageInput | None = None

    def open(self, paths: Sequence[Path]) -> tuple[list[Part], list[Part]]:
        """The parts of all paths: those to learn from, and those for the test."""
        test = None if self.config.test is None else self.config.test.expanduser()
        # Images of both parts are brought to one format, so their folders are looked at together.
        together = test is not None and {find_kind(path) for path in (*paths, test)} == {"folder"}
        pairs = [self.open_one(path, test if together and path == paths[0] else None) for path in paths]
        parts, tests = [part for part, _ in pairs], [part for _, part in pairs if part is not None]
        if test is not None and not together:
            tests = [self.open_one(test)[0]]
        if self.config.test_fraction is not None and tests:
            raise SettingsError(f"{tests[0].where} is the test part, so none is split off", setting="test_fraction")
        return parts, tests

    def open_one(self, path: Path, test: Path | None = None) -> tuple[Part, Part | None]:
        """What a path holds, and its test part if it has one."""
        encoder = self.target.encoder if self.target else self.encoder
        if encoder is None:
            return self._open(path, test, self.target, None)
        parts = self._open(path, test, None, encoder)  # images of any size, or features
        part, own_test = (None if each is None else encode_part(each, encoder) for each in parts)
        assert part is not None
        return part, own_test

    def _open(
        self, path: Path, test: Path | None, target: Target | None, encoder: Encoder | None
    ) -> tuple[Part, Part | None]:
        config, kind = self.config, find_kind(path)
        if encoder is not None and isinstance(encoder.takes, TextInput) and kind in ("csv", "parquet"):
            if kind == "parquet":
                raise DataError(f"{path}: texts are read from .csv; save the table as such a file")
            return text_part(path, config.label, config.dropped, config.header), None
        if kind == "csv":
            return csv_part(path, config.label, config.dropped, config.header, target), None
        if kind == "parquet":
            return parquet_part(path, config.label, config.dropped, target), None
        if kind == "npy":
            return npy_part(path, config.label, target), None
        for setting in ("label", "drop", "header"):
            if getattr(config, setting) is not None:
                raise SettingsError(f"is for tables (.csv, .parquet); {path} has no columns", setting=setting)
        if kind == "folder":
            skip = config.damaged == "skip"
            return folder_parts(path, test, self.image_size, target, self.progress, encoder, skip, self.images)
        if kind == "npz":
            return npz_test_part(path, target) if self.test_only else npz_parts(path, target)
        needed = f"{', '.join(FILES)}, or a folder with one sub-folder per class"
        raise DataError(f"{path}: holds no labels; use {needed}")
