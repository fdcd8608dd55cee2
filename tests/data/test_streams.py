"""Streams by name: how they are split, and how more of them are registered."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch

from spacenet.config.model import PreprocessingConfig
from spacenet.config.stream import StreamConfig
from spacenet.data import datasets
from spacenet.data.dataset import Dataset
from spacenet.data.datasets import KnownDataset
from spacenet.data.stream import Stream
from spacenet.data.streams import build_stream, register_stream
from spacenet.data.streams import stream as make_stream
from spacenet.errors import SettingsError
from spacenet.registry import STREAMS

MEAN, STD = (0.1, 0.2, 0.3), (0.5, 0.6, 0.7)


def images(name: str = "images", classes: int = 4) -> Dataset:
    """Ten training samples and three test samples of each class."""
    rng = np.random.default_rng(0)
    train, test = np.repeat(np.arange(classes), 10), np.repeat(np.arange(classes), 3)
    x_train, x_test = (rng.integers(0, 256, (len(y), 3, 4, 5), dtype=np.uint8) for y in (train, test))
    return Dataset(name, x_train, train, x_test, test, 1 / 255, MEAN, STD)


@dataclass(frozen=True)
class FakeDataset(KnownDataset):
    def load(self, data_dir: Path | None = None) -> Dataset:
        return images(self.name, self.classes)


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small data sets under the names of the two CIFARs and of their combination."""
    first, second = FakeDataset("cifar-10", 10, 0, 0, ()), FakeDataset("cifar-100", 100, 0, 0, ())
    monkeypatch.setattr(datasets, "CIFAR_10", first)
    monkeypatch.setattr(datasets, "CIFAR_100", second)
    monkeypatch.setattr(datasets, "CIFAR_10_100", replace(datasets.CIFAR_10_100, first=first, second=second))


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_constants_by_channel(share: float) -> None:
    data = images()
    stream = Stream("images", data, ((0, 1), (2, 3)), preprocessing=PreprocessingConfig(centering=share))
    first = torch.from_numpy(data.x_train[data.y_train < 2]) / 255
    constant, std = (torch.tensor(each).view(3, 1, 1) for each in (MEAN, STD))
    mean = share * first.mean(0) + (1 - share) * constant
    x = stream[1].test.x
    assert x.dtype == torch.float32
    torch.testing.assert_close(x, (torch.from_numpy(data.x_test[data.y_test >= 2]) / 255 - mean) / std)
    assert data.x_test.dtype == np.uint8


@pytest.mark.parametrize(("mean", "std"), [(0.4, STD), (MEAN, 0.4), (None, STD), (MEAN, None)])
def test_one_constant_may_be_by_channel_and_the_other_not(
    mean: float | tuple[float, ...] | None, std: float | tuple[float, ...] | None
) -> None:
    data = replace(images(), mean=mean, std=std)
    first = torch.from_numpy(data.x_train[data.y_train < 2]) / 255

    def shaped(constant: float | tuple[float, ...]) -> torch.Tensor:
        return torch.tensor(constant).reshape(-1, 1, 1)

    centred = first - (first.mean() if mean is None else shaped(mean))
    expected = centred / (centred.square().mean().sqrt() if std is None else shaped(std))
    stream = Stream("images", data, ((0, 1),), preprocessing=PreprocessingConfig(centering=0.0, standardize="all"))
    torch.testing.assert_close(stream[0].train.x, expected)


@pytest.mark.usefixtures("fakes")
@pytest.mark.parametrize(
    ("name", "tasks", "size"), [("split-cifar-10", 5, 2), ("icifar-100", 5, 20), ("cifar-10-100", 6, 10)]
)
def test_the_default_tasks(name: str, tasks: int, size: int) -> None:
    stream = make_stream(name)
    assert [task.labels for task in stream] == [tuple(range(i * size, (i + 1) * size)) for i in range(tasks)]
    assert stream.input_shape == (3, 4, 5)
    assert all(len(task.train) == 10 * size for task in stream)
    assert all(len(task.test) == 3 * size for task in stream)


@pytest.mark.usefixtures("fakes")
def test_cifar_10_comes_first_and_gives_the_constants() -> None:
    stream = make_stream("cifar-10-100").with_preprocessing(PreprocessingConfig(centering=0.0, standardize="all"))
    later = images("cifar-100", 100)
    mean, std = (torch.tensor(each).view(3, 1, 1) for each in (MEAN, STD))
    expected = (torch.from_numpy(later.x_test[np.isin(later.y_test, range(40, 50))]) / 255 - mean) / std
    torch.testing.assert_close(stream[5].test.x, expected)
    assert stream[5].labels == tuple(range(50, 60))
    assert (stream.dataset.mean, stream.dataset.std) == (MEAN, STD)


@pytest.mark.usefixtures("fakes")
@pytest.mark.parametrize("name", ["split-cifar-10", "icifar-100", "cifar-10-100"])
def test_the_tasks_can_be_chosen(name: str) -> None:
    classes = len(make_stream(name).labels)
    thirds = make_stream(name, classes_per_task=3, shuffle_classes=1)
    assert [len(task.labels) for task in thirds[:-1]] == [3] * (len(thirds) - 1)
    assert sorted(map(str, thirds.labels)) == sorted(map(str, range(classes)))
    assert thirds.labels != tuple(range(classes))
    uneven = make_stream(name, first_classes=classes // 2, classes_per_task=classes // 10)
    assert [len(task.labels) for task in uneven] == [classes // 2] + [classes // 10] * 5
    named = make_stream(name, tasks="9,0/5")
    assert [task.labels for task in named] == [(9, 0), (5,)]
    held = make_stream(name, validation=0.2)
    assert (len(held.dataset.x_train), len(held.dataset.x_test)) == (8 * classes, 2 * classes)


def test_tasks_as_sequences_are_those_of_the_text() -> None:
    by_text, by_labels = make_stream("split-digits", tasks="0,9/5"), make_stream("split-digits", tasks=[[0, 9], [5]])
    assert by_text.task_labels == by_labels.task_labels == ((0, 9), (5,))
    assert by_text.config == by_labels.config == StreamConfig(tasks="0,9/5")
    with pytest.raises(SettingsError, match="comma or a slash"):
        make_stream("split-digits", tasks=[["a,b"]])


def test_a_stream_can_be_made_again_from_its_configuration() -> None:
    stream = make_stream("split-digits", classes_per_task=3, first_classes=4, shuffle_classes=5, validation=0.2)
    assert [len(task.labels) for task in stream] == [4, 3, 3]
    for part in (stream, stream[:2], stream[1:]):
        again = build_stream(part.config)
        assert again.task_labels == part.task_labels
        assert torch.equal(again[0].test.x, part[0].test.x)


def test_a_misspelled_name() -> None:
    with pytest.raises(SettingsError, match="unknown stream 'split-minst', did you mean 'split-mnist'"):
        make_stream("split-minst")


def test_registered_streams() -> None:
    try:
        register_stream("halves", "digits", classes_per_task=5)
        register_stream("halves", "digits", classes_per_task=5)
        assert len(make_stream("halves")) == 2
        register_stream("halves", "digits", classes_per_task=4)  # the cell of a notebook, edited and run again
        assert len(make_stream("halves")) == 3
        with pytest.raises(SettingsError, match="already a stream named 'halves'"):
            register_stream("halves", "mnist")
    finally:
        STREAMS.unregister("halves")
    with pytest.raises(SettingsError, match="already a stream named 'split-digits'"):
        register_stream("split-digits", "digits", 5)
    with pytest.raises(SettingsError, match="unknown data set 'digit', did you mean 'digits'"):
        register_stream("halves", "digit")
    with pytest.raises(SettingsError, match="classes_per_task: 0 is out of range"):
        register_stream("halves", "digits", classes_per_task=0)
