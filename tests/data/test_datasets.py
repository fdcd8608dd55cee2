"""The data sets by name: fake ones of a few bytes, and the real ones if they are on this machine."""

import gzip
import hashlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from spacenet import registry
from spacenet.data import datasets
from spacenet.data.dataset import Dataset
from spacenet.data.datasets import CombinedDataset, FileDataset, KnownDataset, RecordLayout
from spacenet.data.fetch import FetchResult, Location, load_files
from spacenet.data.files import DataFile, FileSet
from spacenet.data.streams import register_dataset
from spacenet.errors import DataError, SettingsError
from spacenet.registry import DATASETS
from tests.support import clouds

SHAPE = (3, 2, 2)
ROWS = {
    "a.bin": np.arange(28, dtype=np.uint8).reshape(2, 14),
    "b.bin": np.arange(100, 114, dtype=np.uint8).reshape(1, 14),
    "t.bin": np.arange(200, 228, dtype=np.uint8).reshape(2, 14),
}


@pytest.fixture
def records(tiny: Callable[..., FileSet]) -> FileDataset:
    """The data set `tiny` as records with two labels each."""
    source = tiny(
        files=tuple(DataFile(name, r.size, hashlib.sha256(r.tobytes()).hexdigest()) for name, r in ROWS.items()),
        folders=("tiny-bin", "tiny/tiny-bin"),
    )
    layout = RecordLayout(("a.bin", "b.bin"), ("t.bin",), label_bytes=2)
    return FileDataset("tiny", 10, 3, 2, SHAPE, (0.1, 0.2, 0.3), (0.4, 0.5, 0.6), source, layout)


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize("layout", ["tiny-bin", "tiny/tiny-bin"])
@pytest.mark.parametrize("packed", [True, False])
def test_records_from_the_users_folder(records: FileDataset, tmp_path: Path, layout: str, packed: bool) -> None:
    folder = tmp_path / layout
    folder.mkdir(parents=True)
    for name, rows in ROWS.items():
        content = rows.tobytes()
        (folder / (f"{name}.gz" if packed else name)).write_bytes(gzip.compress(content) if packed else content)
    data = records.load(tmp_path)
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


@pytest.mark.usefixtures("no_network")
def test_a_file_with_another_checksum_is_passed_over(records: FileDataset, tmp_path: Path) -> None:
    (tmp_path / "tiny-bin").mkdir()
    (tmp_path / "tiny" / "tiny-bin").mkdir(parents=True)
    for name, rows in ROWS.items():
        (tmp_path / "tiny" / "tiny-bin" / name).write_bytes(rows.tobytes())
    (tmp_path / "tiny-bin" / "a.bin").write_bytes(bytes(28))
    found = load_files(records.source, tmp_path)
    assert found.contents == {name: rows.tobytes() for name, rows in ROWS.items()}
    (problem,) = found.broken
    assert problem.endswith("tiny-bin/a.bin: checksum does not match".replace("/", os.sep))


@pytest.mark.parametrize("known", [datasets.CIFAR_10, datasets.CIFAR_100])
def test_the_table_fits_the_format(known: FileDataset) -> None:
    assert known.records is not None
    length = known.records.label_bytes + 3072
    sizes = {file.name: file.size for file in known.source.files}
    assert sum(sizes[file] for file in known.records.train) == known.train * length
    assert sum(sizes[file] for file in known.records.test) == known.test * length
    assert set(sizes) == {*known.records.train, *known.records.test}


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


@dataclass(frozen=True)
class FakeDataset(KnownDataset):
    """Two training samples and one test sample of each class, in an order that is not sorted."""

    base: int = 0

    def load(self, data_dir: Path | None = None) -> Dataset:
        y = np.arange(self.classes, dtype=np.int64)[::-1]
        x = np.broadcast_to((y % 100 + self.base).astype(np.uint8)[:, None, None, None], (self.classes, *self.shape))
        twice, labels = np.concatenate([x, x]), np.concatenate([y, y])
        return Dataset(str(data_dir), twice, labels, x.copy(), y, 1 / 255, mean=self.base / 1000, std=0.5)

    def find(self, data_dir: Path | None = None) -> Location:
        return Location(f"{data_dir}/{self.name}", (f"{self.name}: a problem",)) if data_dir else Location(None)

    def fetch(self, data_dir: Path | None = None) -> FetchResult:
        return FetchResult(self.name, f"{self.name}.org", ("a.bin",), Path("cache", self.name))


COMBINED = CombinedDataset(
    "both",
    classes=60,
    train=120,
    test=60,
    shape=(3, 4, 4),
    first=FakeDataset("one", 10, 20, 10, (3, 4, 4)),
    second=FakeDataset("two", 100, 200, 100, (3, 4, 4), base=100),
)


def test_one_data_set_and_the_first_classes_of_another() -> None:
    data = COMBINED.load(Path("mine"))
    assert data.name == "both"
    assert data.labels == list(range(60))
    assert (len(data.y_train), len(data.y_test)) == (COMBINED.train, COMBINED.test)
    assert data.x_train.dtype == np.uint8
    for x, y in ((data.x_train, data.y_train), (data.x_test, data.y_test)):
        assert np.array_equal(x[:, 0, 0, 0], np.where(y < 10, y, y - 10 + 100))
    assert (data.mean, data.std) == (0.0, 0.5)


def test_a_combination_is_found_and_fetched_in_parts() -> None:
    assert COMBINED.find() == Location(None)
    assert COMBINED.find(Path("mine")) == Location("mine/one, mine/two", ("one: a problem", "two: a problem"))
    assert COMBINED.fetch() == FetchResult("both", "one.org, two.org", ("one/a.bin", "two/a.bin"), Path("cache"))
    half = CombinedDataset("half", 20, 0, 0, (3, 4, 4), COMBINED.first, datasets.CIFAR_100)
    assert half.find(Path("/nowhere")).where is None


def test_cifar_10_and_half_of_cifar_100() -> None:
    both = datasets.CIFAR_10_100
    assert (both.first, both.second) == (datasets.CIFAR_10, datasets.CIFAR_100)
    assert both.classes == 60
    assert (both.train, both.test) == (50000 + 25000, 10000 + 5000)


def test_a_registered_function_is_a_data_set() -> None:
    def load(data_dir: Path | None) -> Dataset:
        x, y = np.zeros((4, 3)), np.arange(4)
        return Dataset(str(data_dir), x, y, x, y)

    register_dataset("registered", load)
    try:
        assert datasets.load_dataset("registered", Path("here")).name == "here"
        assert datasets.get_dataset("registered").fetch().downloaded == ()
        (line,) = [line for line in datasets.list_datasets() if line.name == "registered"]
        assert line.status == "registered"
        with pytest.raises(SettingsError, match="already a data set named 'mnist'"):
            register_dataset("mnist", load)
    finally:
        DATASETS.unregister("registered")


def load_clouds(data_dir: Path | None) -> Dataset:
    return clouds()


def test_data_sets_of_installed_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [
        EntryPoint("clouds", f"{__name__}:load_clouds", "spacenet.datasets"),
        EntryPoint("broken", "no_such_package:load", "spacenet.datasets"),
    ]
    monkeypatch.setattr(registry, "entry_points", lambda group: [point for point in points if point.group == group])
    assert np.array_equal(datasets.load_dataset("clouds").x_train, clouds().x_train)
    lines = {line.name: line for line in datasets.list_datasets()}
    assert lines["clouds"].status == "registered"
    assert lines["broken"].status == "not usable"
    assert "no_such_package" in lines["broken"].problems[0]


def test_a_function_that_was_defined_again_is_called_again() -> None:
    def define(number: int) -> Callable[[Path | None], Dataset]:
        def load(data_dir: Path | None) -> Dataset:
            x, y = np.full((4, 3), number), np.arange(4)
            return Dataset("again", x, y, x, y)

        return load

    try:
        for number in (1, 2):
            register_dataset("again", define(number))
            assert datasets.load_dataset("again").x_train[0, 0] == number
    finally:
        DATASETS.unregister("again")


def test_digits() -> None:
    data = datasets.load_dataset("digits")
    known = datasets.DIGITS
    assert (len(data.x_train), len(data.x_test), data.x_train.shape[1:]) == (known.train, known.test, known.shape)
    assert data.x_train.dtype == np.uint8
    assert data.x_train.max() == 16
    assert data.scale == 1 / 16
    assert data.y_train.dtype == np.int64
    assert data.labels == list(range(10))
    assert data.mean is None
    for label in range(10):
        total = (data.y_train == label).sum() + (data.y_test == label).sum()
        assert (data.y_test == label).sum() == total // 5


def test_an_unknown_name() -> None:
    choices = "digits, mnist, fashion-mnist, cifar-10, cifar-100, cifar-10-100"
    for name, hint in (("nothing", ""), ("minst", ", did you mean 'mnist'")):
        with pytest.raises(SettingsError, match=f"unknown data set '{name}'{hint}.*{choices}"):
            datasets.load_dataset(name)


def test_the_list_says_where_and_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPACENET_DATA", raising=False)
    monkeypatch.setenv("SPACENET_CACHE", str(tmp_path / "cache"))
    broken = tmp_path / "data" / "mnist" / "train-images-idx3-ubyte.gz"
    broken.parent.mkdir(parents=True)
    broken.write_bytes(b"nonsense")
    lines = {line.name: line for line in datasets.list_datasets(tmp_path / "data")}
    assert list(lines) == list(DATASETS)
    assert lines["digits"].status == "comes with scikit-learn"
    mnist = lines["mnist"]
    assert mnist.where is None
    assert mnist.status == "not on this machine; `spacenet data fetch mnist` downloads it"
    assert (mnist.classes, mnist.train, mnist.test, mnist.shape) == (10, 60000, 10000, (28, 28))
    (problem,) = mnist.problems
    assert str(broken) in problem


@pytest.mark.skipif(not os.environ.get("SPACENET_DATA"), reason="SPACENET_DATA names no folder with the real MNIST")
@pytest.mark.parametrize("name", ["mnist", "fashion-mnist"])
def test_the_real_data(name: str) -> None:
    if datasets.get_dataset(name).find().where is None:
        pytest.skip(f"SPACENET_DATA has no {name}")
    data = datasets.load_dataset(name)
    known = datasets.get_dataset(name)
    assert (len(data.x_train), len(data.x_test), data.x_train.shape[1:]) == (known.train, known.test, known.shape)
    assert data.labels == list(range(known.classes))
    assert data.y_train.dtype == np.int64
    assert data.mean == pytest.approx(float(data.x_train.mean()) * data.scale, abs=1e-3)
    assert data.std == pytest.approx(float(data.x_train.std()) * data.scale, abs=1e-3)


def test_digits_are_those_of_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    read = datasets.DIGITS.load()
    bunch = load_digits()
    x, y = bunch.images.astype(np.uint8), bunch.target.astype(np.int64)
    test = np.zeros(len(y), dtype=bool)
    for label in range(10):
        test[np.flatnonzero(y == label)[4::5]] = True
    for found, expected in ((read.x_train, x[~test]), (read.y_train, y[~test]), (read.x_test, x[test])):
        assert found.dtype == expected.dtype
        assert np.array_equal(found, expected)
    # Without the file that comes with scikit-learn, its function is asked.
    monkeypatch.setattr(Path, "is_file", lambda self: False)
    other = datasets.DIGITS.load()
    assert np.array_equal(other.x_train, read.x_train)
    assert np.array_equal(other.y_test, read.y_test)


def test_without_scikit_learn_there_are_no_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    assert datasets.DIGITS.find().where is None
    with pytest.raises(DataError, match="scikit-learn is not installed"):
        datasets.DIGITS.fetch()


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize("known", [datasets.CIFAR_10, datasets.CIFAR_100])
def test_the_real_cifar(known: FileDataset) -> None:
    if known.find().where is None:
        pytest.skip(f"{known.name} is not on this machine")
    data = known.load()
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
