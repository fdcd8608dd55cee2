"""Data sets of records: fake ones of a few bytes, CIFAR's two and the one made from them; the real files if here."""

import gzip
import hashlib
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from spacenet.data import readers, sources
from spacenet.data.dataset import Dataset
from spacenet.data.files import FILE_SETS, DataFile, FileSet, Records
from spacenet.data.formats import read_records
from spacenet.errors import DataError

SHAPE = (3, 2, 2)
ROWS = {
    "a.bin": np.arange(28, dtype=np.uint8).reshape(2, 14),
    "b.bin": np.arange(100, 114, dtype=np.uint8).reshape(1, 14),
    "t.bin": np.arange(200, 228, dtype=np.uint8).reshape(2, 14),
}


@pytest.fixture
def records(tiny: Callable[..., FileSet]) -> FileSet:
    """The data set `tiny` as records with two labels each."""
    return tiny(
        shape=SHAPE,
        mean=(0.1, 0.2, 0.3),
        std=(0.4, 0.5, 0.6),
        files=tuple(DataFile(name, r.size, hashlib.sha256(r.tobytes()).hexdigest()) for name, r in ROWS.items()),
        folders=("tiny-bin", "tiny/tiny-bin"),
        records=Records(("a.bin", "b.bin"), ("t.bin",), label_bytes=2),
    )


@pytest.mark.usefixtures("no_network", "records")
@pytest.mark.parametrize("layout", ["tiny-bin", "tiny/tiny-bin"])
@pytest.mark.parametrize("packed", [True, False])
def test_records_from_the_users_folder(tmp_path: Path, layout: str, packed: bool) -> None:
    folder = tmp_path / layout
    folder.mkdir(parents=True)
    for name, rows in ROWS.items():
        content = rows.tobytes()
        (folder / (f"{name}.gz" if packed else name)).write_bytes(gzip.compress(content) if packed else content)
    data = readers.load_files("tiny", tmp_path)
    train = np.concatenate([ROWS["a.bin"], ROWS["b.bin"]])
    assert np.array_equal(data.x_train, train[:, 2:].reshape(3, *SHAPE))
    assert data.y_train.tolist() == [1, 15, 101]
    assert np.array_equal(data.x_test, ROWS["t.bin"][:, 2:].reshape(2, *SHAPE))
    assert data.y_test.tolist() == [201, 215]
    assert data.x_train.dtype == np.uint8
    assert data.y_train.dtype == np.int64
    assert data.x_train.flags.writeable
    assert data.x_test.flags.writeable
    assert (data.scale, data.mean, data.std) == (1 / 255, (0.1, 0.2, 0.3), (0.4, 0.5, 0.6))


@pytest.mark.usefixtures("no_network", "records")
def test_a_file_with_another_checksum_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "tiny-bin").mkdir()
    (tmp_path / "tiny" / "tiny-bin").mkdir(parents=True)
    for name, rows in ROWS.items():
        (tmp_path / "tiny" / "tiny-bin" / name).write_bytes(rows.tobytes())
    (tmp_path / "tiny-bin" / "a.bin").write_bytes(bytes(28))
    found = sources.locate("tiny", tmp_path)
    assert found.contents == {name: rows.tobytes() for name, rows in ROWS.items()}
    (failure,) = found.broken
    assert failure.endswith("tiny-bin/a.bin: checksum does not match".replace("/", os.sep))


def test_records_that_are_none() -> None:
    with pytest.raises(DataError, match="here: 15 bytes are no whole number of records of 14; get it again"):
        read_records([bytes(15)], 2, SHAPE, "here")


def test_the_table_fits_the_format() -> None:
    for name in ("cifar-10", "cifar-100"):
        entry = FILE_SETS[name]
        assert entry.records is not None
        length = entry.records.label_bytes + 3072
        sizes = {file.name: file.size for file in entry.files}
        assert sum(sizes[file] for file in entry.records.train) == entry.train * length
        assert sum(sizes[file] for file in entry.records.test) == entry.test * length
        assert set(sizes) == {*entry.records.train, *entry.records.test}


@pytest.mark.parametrize(
    ("shape", "changes"),
    [
        ((2, 3, 4, 4), {"mean": (0.1, 0.2)}),
        ((2, 3, 4, 4), {"std": (0.1,)}),
        ((2, 3, 4), {"mean": (0.1, 0.2, 0.3)}),
        ((2, 3, 4, 4), {"std": (0.1, 0.2, 0.0)}),
        ((2, 3, 4, 4), {"std": ()}),
    ],
)
def test_constants_that_do_not_fit(shape: tuple[int, ...], changes: dict[str, tuple[float, ...]]) -> None:
    x, y = np.zeros(shape, np.uint8), np.arange(2)
    with pytest.raises(DataError, match="one per channel of images|must be above 0"):
        Dataset("odd", x, y, x, y, **changes)  # type: ignore[arg-type]


def fake(name: str, classes: int, base: int) -> Dataset:
    """Two training samples and one test sample of each class, in an order that is not sorted."""
    y = np.arange(classes, dtype=np.int64)[::-1]
    x = np.broadcast_to((y % 100 + base).astype(np.uint8)[:, None, None, None], (classes, 3, 4, 4))
    twice, labels = np.concatenate([x, x]), np.concatenate([y, y])
    return Dataset(name, twice, labels, x.copy(), y, 1 / 255, FILE_SETS[name].mean, FILE_SETS[name].std)


def test_cifar_10_and_half_of_cifar_100_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    for name, classes, base in (("cifar-10", 10, 0), ("cifar-100", 100, 100)):

        def load(folder: Path | None, name: str = name, classes: int = classes, base: int = base) -> Dataset:
            asked.append(folder)
            return fake(name, classes, base)

        monkeypatch.setitem(readers.DATASETS, name, replace(readers.DATASETS[name], load=load))
    readers.load_dataset.cache_clear()
    data = readers.load_dataset("cifar-10-100", Path("mine"))
    readers.load_dataset.cache_clear()
    assert asked == [Path("mine")] * 2
    assert data.name == "cifar-10-100"
    assert data.labels == list(range(60))
    assert (len(data.y_train), len(data.y_test)) == (120, 60)
    assert data.x_train.dtype == np.uint8
    for x, y in ((data.x_train, data.y_train), (data.x_test, data.y_test)):
        assert np.array_equal(x[:, 0, 0, 0], np.where(y < 10, y, y - 10 + 100))
    assert (data.mean, data.std) == (FILE_SETS["cifar-10"].mean, FILE_SETS["cifar-10"].std)


def test_the_combination_has_no_files_to_list_or_fetch() -> None:
    assert "cifar-10-100" not in readers.DATASETS
    with pytest.raises(DataError, match="not a data set that comes as files"):
        sources.fetch("cifar-10-100")


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize("name", ["cifar-10", "cifar-100"])
def test_the_real_data(name: str) -> None:
    named = os.environ.get("SPACENET_DATA")
    if not named or not any((Path(named) / below).is_dir() for below in FILE_SETS[name].folders):
        pytest.skip(f"SPACENET_DATA names no folder with {FILE_SETS[name].folders[0]}")
    data, known = readers.load_files(name), FILE_SETS[name]
    assert data.x_train.shape == (known.train, 3, 32, 32)
    assert data.x_test.shape == (known.test, 3, 32, 32)
    assert data.x_train.dtype == np.uint8
    assert data.y_train.dtype == np.int64
    assert np.bincount(data.y_train).tolist() == [known.train // known.classes] * known.classes
    assert np.bincount(data.y_test).tolist() == [known.test // known.classes] * known.classes
    for channel in range(3):
        # Sums of bytes by value: no copy of the data set as floats.
        counts = np.bincount(data.x_train[:, channel].reshape(-1), minlength=256)
        values = np.arange(256) / 255
        mean = float((counts * values).sum() / counts.sum())
        std = float(((counts * (values - mean) ** 2).sum() / counts.sum()) ** 0.5)
        assert isinstance(data.mean, tuple)
        assert isinstance(data.std, tuple)
        assert (data.mean[channel], data.std[channel]) == pytest.approx((mean, std), abs=1e-3)
