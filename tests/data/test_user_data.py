"""Streams made from the user's own data: arrays, folders of images, and other libraries' data sets."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pytest
import torch
from PIL import Image
from torch.utils.data import IterableDataset, Subset, TensorDataset

from spacenet.config.model import PreprocessingConfig
from spacenet.data.stream import Stream
from spacenet.data.streams import build_stream
from spacenet.errors import DataError, SettingsError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 8)).astype(np.float32)
Y = np.arange(60) % 6


def same(one: Stream, other: Stream) -> bool:
    """Whether two streams have the same tasks with the same samples."""
    pairs = zip(one, other, strict=True)
    return one.task_labels == other.task_labels and all(
        torch.equal(getattr(a, part).x, getattr(b, part).x) and torch.equal(getattr(a, part).y, getattr(b, part).y)
        for a, b in pairs
        for part in ("train", "test")
    )


# Arrays


def test_a_part_of_each_class_is_held_out() -> None:
    stream = Stream.from_arrays(X, Y, test_fraction=0.3)
    assert [task.labels for task in stream] == [(0, 1), (2, 3), (4, 5)]
    assert [len(task.test) for task in stream] == [6, 6, 6]
    assert [len(task.train) for task in stream] == [14, 14, 14]
    rows = {row.tobytes() for row in stream.dataset.x_train} | {row.tobytes() for row in stream.dataset.x_test}
    assert rows == {row.tobytes() for row in X}
    assert same(stream, Stream.from_arrays(X, Y, test_fraction=0.3))


def test_test_data_is_used_as_it_is() -> None:
    stream = Stream.from_arrays(X, Y, X[:12] + 1, Y[:12], classes_per_task=6)
    assert len(stream[0].train) == 60
    assert np.array_equal(stream.dataset.x_test, X[:12] + 1)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (torch.from_numpy(X).requires_grad_(), torch.from_numpy(Y)),
        (pd.DataFrame(X), pd.Series(Y)),
        (pd.DataFrame(X), pd.DataFrame({"label": Y})),
        (X.tolist(), Y.tolist()),
        (list(X), list(Y)),
        (list(torch.from_numpy(X)), list(torch.from_numpy(Y))),
        (X.astype(">f4"), Y.astype(float)),
        (pd.DataFrame(X).astype("Float32"), pd.Series(Y).astype("Int64")),
        (np.asfortranarray(X), Y.astype(object)),
    ],
    ids=[
        "tensors",
        "frame and series",
        "frames",
        "lists",
        "lists of arrays",
        "lists of tensors",
        "big-endian",
        "nullable",
        "objects",
    ],
)
def test_arrays_of_every_kind(x: Any, y: Any) -> None:
    assert same(Stream.from_arrays(x, y), Stream.from_arrays(X, Y))


@pytest.mark.parametrize(
    "y", [list("abcabc") * 10, pd.Series(list("abcabc") * 10), pd.Categorical(list("abcabc") * 10)]
)
def test_labels_may_be_words(y: Any) -> None:
    stream = Stream.from_arrays(X, y, tasks=[["c"], ["a", "b"]])
    assert stream.labels == ("c", "a", "b")
    assert Stream.from_arrays(X, y, tasks="c/a,b").task_labels == stream.task_labels


def test_bytes_are_pixels() -> None:
    pixels = RNG.integers(0, 256, (60, 4, 4), dtype=np.uint8)
    assert Stream.from_arrays(pixels, Y).dataset.scale == 1 / 255
    assert Stream.from_arrays(pixels.astype(np.int64), Y).dataset.scale == 1.0
    with pytest.raises(DataError, match="must have the same type"):
        Stream.from_arrays(pixels, Y, pixels / 255, Y)


def test_tasks_of_numpys_numbers_are_plain_labels() -> None:
    stream = Stream.from_arrays(X, Y, tasks=np.array([[5, 0], [1, 2]]).tolist())
    assert repr(Stream.from_arrays(X, Y, tasks=np.array([[5, 0], [1, 2]])).labels) == repr(stream.labels)  # type: ignore[arg-type]


def test_the_order_of_classes_follows_the_seed() -> None:
    orders = [Stream.from_arrays(X, Y, shuffle_classes=seed).labels for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]


def test_the_first_task_has_as_many_classes_as_one_says(tmp_path: Path) -> None:
    np.savez(tmp_path / "mine.npz", x_train=X, y_train=Y, x_test=X, y_test=Y)
    in_memory = Stream.from_arrays(X, Y, first_classes=3, classes_per_task=1)
    from_file = Stream.from_data(tmp_path / "mine.npz", first_classes=3, classes_per_task=1)
    assert [len(task.labels) for task in in_memory] == [3] + [1] * (len(set(Y.tolist())) - 3)
    assert in_memory.task_labels == from_file.task_labels == build_stream(from_file.config).task_labels
    assert from_file[1:].config.first_classes is None


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"y": Y[:-1]}, "one label per row"),
        ({"x": np.zeros(60)}, "one row per sample"),
        ({"x": np.zeros((60, 0))}, "is empty"),
        ({"x": np.full((60, 2), np.nan)}, "NaN or infinite values in 60 of its 60 samples"),
        ({"x": np.array([["a"] * 2] * 60)}, "x holds <U1 values; numbers are needed"),
        ({"x": [[1, 2], [3]] * 30}, "cannot be converted to an array"),
        ({"x": X.astype(complex)}, "numbers are needed"),
        ({"y": Y + 0.5}, "y holds float64 labels"),
        ({"y": [0, "0"] * 30}, "labels of several types"),
        ({"y": [None] * 60}, "labels of several types"),
        ({"y": np.stack([Y, Y], 1)}, "one label per sample"),
        ({"x_test": X}, "x_test and y_test belong together"),
        ({"y": np.arange(60)}, "class 0 has one sample only"),
        ({"x_test": X[:, :3], "y_test": Y}, "they must agree"),
        ({"x_test": X, "y_test": Y.astype(str)}, "use one type"),
        ({"x_test": X[Y < 5], "y_test": Y[Y < 5]}, "class 5 has no test samples"),
    ],
)
def test_arrays_that_are_wrong(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(DataError, match=f"mine.*{reason}"):
        Stream.from_arrays(**{"x": X, "y": Y, "name": "mine", **changes})


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"classes_per_task": 0}, "classes_per_task: 0 is out of range"),
        ({"test_fraction": 0}, "test_fraction: 0 is out of range"),
        ({"test_fraction": 1.0}, "test_fraction: 1.0 is out of range"),
        ({"tasks": [[0, 9]]}, "tasks: unknown class '9'"),
        ({"tasks": [[0], []]}, "tasks: every task needs at least one class"),
        ({"tasks": [[0, 1], [1]]}, "tasks: class 1 is in more than one task"),
        ({"tasks": [[0, 1]], "shuffle_classes": 1}, "tasks: .*shuffle_classes"),
        ({"tasks": "0,1", "shuffle_classes": 1}, "tasks: .*shuffle_classes"),
        ({"name": "split-mnist"}, "name: 'split-mnist' is the name of another stream"),
    ],
)
def test_settings_that_are_wrong(settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(SettingsError, match=reason):
        Stream.from_arrays(X, Y, **settings)


# Folders


def fill(folder: Path, classes: dict[str, int], mode: str = "RGB", size: tuple[int, int] = (6, 4)) -> Path:
    """Images of one value in each class: 10 times the number of the image."""
    for label, count in classes.items():
        (folder / label).mkdir(parents=True)
        for number in range(count):
            color = (10 * number,) * 3 if mode == "RGB" else 10 * number
            Image.new(mode, size, color).save(folder / label / f"{number}.png")
    return folder


def test_one_folder_for_each_class(tmp_path: Path) -> None:
    fill(tmp_path / "pets", {"dog": 5, "cat": 10, "eel": 5})
    (tmp_path / "pets" / ".cache").mkdir()
    (tmp_path / "pets" / "notes.txt").touch()
    stream = Stream.from_folder(tmp_path / "pets", classes_per_task=1)
    assert stream.name == "pets"
    assert stream.labels == ("cat", "dog", "eel")
    assert stream.input_shape == (3, 4, 6)
    assert [(len(task.train), len(task.test)) for task in stream] == [(8, 2), (4, 1), (4, 1)]
    assert stream.dataset.scale == 1 / 255
    assert sorted([*stream.dataset.x_train[:8][:, 0, 0, 0], *stream.dataset.x_test[:2][:, 0, 0, 0]]) == [
        *range(0, 100, 10)
    ]


def test_folders_of_training_and_test_images(tmp_path: Path) -> None:
    fill(tmp_path / "train", {"a": 3, "b": 2}, "L")
    fill(tmp_path / "test", {"a": 1, "b": 2}, "L")
    within, apart = Stream.from_folder(tmp_path), Stream.from_folder(tmp_path / "train", test=tmp_path / "test")
    assert same(within, apart)
    assert within.input_shape == (4, 6)
    assert (len(within[0].train), len(within[0].test)) == (5, 3)


def test_classes_may_be_named_train_and_test(tmp_path: Path) -> None:
    assert Stream.from_folder(fill(tmp_path, {"test": 2, "train": 2})).labels == ("test", "train")


def test_images_of_several_sizes_and_modes(tmp_path: Path) -> None:
    fill(tmp_path, {"a": 2}, "L")
    fill(tmp_path, {"b": 2}, "RGB", (9, 9))
    with pytest.raises(DataError, match=r"0.png has 9 × 9 pixels, .*0.png 6 × 4. Pass image_size"):
        Stream.from_folder(tmp_path)
    assert Stream.from_folder(tmp_path, image_size=8).input_shape == (3, 8, 8)
    assert Stream.from_folder(tmp_path, image_size=(8, 5)).input_shape == (3, 8, 5)
    with pytest.raises(SettingsError, match="image_size: 0 is not a size"):
        Stream.from_folder(tmp_path, image_size=0)


def test_folders_that_are_wrong(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="gone: no such folder"):
        Stream.from_folder(tmp_path / "gone")
    with pytest.raises(DataError, match="has no sub-folders"):
        Stream.from_folder(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="empty: has no images"):
        Stream.from_folder(tmp_path)
    (tmp_path / "empty" / "a.png").write_bytes(b"no image")
    with pytest.raises(DataError, match="a.png: not an image that can be read"):
        Stream.from_folder(tmp_path)


# Other libraries' data sets


def test_a_torch_data_set() -> None:
    data = TensorDataset(torch.from_numpy(X), torch.from_numpy(Y))
    assert same(Stream.from_dataset(data), Stream.from_arrays(X, Y))
    part = Subset(data, range(12))
    assert same(Stream.from_dataset(data, test=part), Stream.from_arrays(X, Y, X[:12], Y[:12]))


def test_any_sequence_of_pairs() -> None:
    assert same(
        Stream.from_dataset([(row.tolist(), int(label)) for row, label in zip(X, Y, strict=True)]),
        Stream.from_arrays(X.tolist(), Y),
    )


def test_pillow_images_become_channels_first() -> None:
    pixels = RNG.integers(0, 256, (8, 4, 6, 3), dtype=np.uint8)
    stream = Stream.from_dataset(
        [(Image.fromarray(image), number % 2) for number, image in enumerate(pixels)], test_fraction=0.5
    )
    assert stream.input_shape == (3, 4, 6)
    assert stream.dataset.scale == 1 / 255
    first = [image.transpose(2, 0, 1).tobytes() for image in pixels]
    assert {image.tobytes() for image in stream.dataset.x_train} < set(first)


def test_items_of_several_types_lose_nothing() -> None:
    items = [(np.array([1, 2]), 0), (np.array([0.5, 1.5]), 0), (np.array([3, 4]), 1), (np.array([2.5, 2.5]), 1)]
    values = Stream.from_dataset(items, test=items).dataset.x_train
    assert np.array_equal(values, np.stack([x for x, _ in items]))


class Endless(IterableDataset[tuple[int, int]]):
    def __iter__(self) -> Iterator[tuple[int, int]]:
        yield from ()


@pytest.mark.parametrize(
    ("items", "reason"),
    [
        ([], "is empty"),
        ([1, 2], r"item 0 is not a pair \(x, y\)"),
        ([(np.zeros(2), 0), (np.zeros(3), 1)], r"item 1 has the shape \(3,\), item 0 \(2,\)"),
        (Endless(), "has no length"),
    ],
)
def test_data_sets_that_are_wrong(items: Any, reason: str) -> None:
    with pytest.raises(DataError, match=f"custom: .*{reason}"):
        Stream.from_dataset(items)


# What all of them share


def test_preprocessing_replaces_what_follows_from_the_data() -> None:
    stream = Stream.from_arrays(X, Y)
    assert stream.preprocessing == PreprocessingConfig()
    plain = stream.with_preprocessing(PreprocessingConfig(scale=2.0, mean=1.0, std=4.0, centering=0.0))
    assert plain.config == stream.config
    rows = np.isin(stream.dataset.y_train, [0, 1])
    torch.testing.assert_close(plain[0].train.x, torch.from_numpy((stream.dataset.x_train[rows] * 2 - 1) / 4))
    assert plain[1:].preprocessing == plain.preprocessing
    assert not torch.equal(stream[0].train.x, plain[0].train.x)


def test_constants_by_channel_need_channels() -> None:
    preprocessing = PreprocessingConfig(mean=(0.1, 0.2, 0.3))
    with pytest.raises(SettingsError, match="mean: has 3 numbers and samples have the shape"):
        Stream.from_arrays(X, Y).with_preprocessing(preprocessing)
    images = Stream.from_arrays(RNG.normal(size=(12, 3, 4, 4)), np.arange(12) % 2)
    assert images.with_preprocessing(preprocessing).preprocessing == preprocessing


def test_it_describes_itself() -> None:
    stream = Stream.from_arrays(X, [f"<{label}>" for label in Y], name="mine & yours")
    assert repr(stream) == "Stream('mine & yours': 3 tasks, 6 classes, 48 training and 12 test samples of shape 8)"
    assert repr(stream[:1]).startswith("Stream('mine & yours': 1 task, 2 classes, 16 training and 4 test samples")
    html = stream._repr_html_()
    assert html.count("<tr>") == 4
    assert "mine &amp; yours" in html
    assert "<td>2</td><td>&lt;2&gt;, &lt;3&gt;</td><td>16</td><td>4</td>" in html


def test_its_configuration_is_its_name() -> None:
    stream = Stream.from_arrays(X, Y, classes_per_task=3, name="mine")
    assert stream.config.name == stream[1:].config.name == "mine"
    assert stream[1:].config.tasks is None
