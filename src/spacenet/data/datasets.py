"""The data sets that are known by name."""

from functools import lru_cache
from pathlib import Path
from typing import Any

from spacenet.data import readers
from spacenet.data.dataset import Dataset
from spacenet.registry import DATASETS, unknown

DIGITS = readers.DATASETS["digits"]
MNIST = readers.DATASETS["mnist"]
FASHION_MNIST = readers.DATASETS["fashion-mnist"]
CIFAR_10 = readers.DATASETS["cifar-10"]
CIFAR_100 = readers.DATASETS["cifar-100"]
CIFAR_10_100 = readers.load_cifar_10_100


def load_dataset(name: str, data_dir: Path | None = None) -> Dataset:
    """A data set by name."""
    if name not in DATASETS:
        raise unknown("data set", name, DATASETS)
    return _load(DATASETS[name], data_dir)


@lru_cache(maxsize=1)
def _load(entry: Any, data_dir: Path | None) -> Dataset:
    found: Dataset = (entry.load if hasattr(entry, "load") else entry)(data_dir)
    return found
