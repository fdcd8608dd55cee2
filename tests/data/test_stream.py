from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spacenet.config.model import PreprocessingConfig
from spacenet.config.stream import StreamConfig
from spacenet.data.dataset import Dataset
from spacenet.data.preprocessing import Normalization
from spacenet.data.stream import Stream
from spacenet.data.streams import build_stream
from spacenet.data.task import split_classes
from spacenet.errors import DataError, SettingsError
from spacenet.registry import STREAMS
from tests.support import clouds, clouds_file


def centered(share: float) -> PreprocessingConfig:
    return PreprocessingConfig(centering=share, standardize="all")


def stream(**settings: object) -> Stream:
    chosen = StreamConfig(**settings)  # type: ignore[arg-type]
    data = clouds()
    return Stream("clouds", data, split_classes(data.labels, chosen, 2))


def test_it_is_a_sequence_of_tasks() -> None:
    tasks = stream()
    assert len(tasks) == 3
    assert [task.labels for task in tasks] == [(0, 1), (2, 3), (4, 5)]
    assert [task.classes for task in tasks] == [range(2), range(2, 4), range(4, 6)]
    assert tasks[-1].labels == (4, 5)
    assert [task.index for task in tasks[1:]] == [0, 1]
    assert tasks[1:].labels == (2, 3, 4, 5)
    with pytest.raises(IndexError):
        tasks[3]


@given(st.integers(1, 7), st.one_of(st.none(), st.integers(1, 7)), st.one_of(st.none(), st.integers(0, 50)))
def test_every_sample_is_in_exactly_one_task(size: int, first: int | None, shuffle: int | None) -> None:
    tasks = stream(classes_per_task=size, first_classes=first, shuffle_classes=shuffle)
    assert sum(len(task.train) for task in tasks) == sum(len(task.test) for task in tasks) == 180
    assert sorted(map(str, tasks.labels)) == [str(label) for label in range(6)]
    for task in tasks:
        assert sorted(task.train.y.unique().tolist()) == list(task.classes)
        assert len(task.classes) <= (size if task.index else first or size)


def test_class_numbers_count_in_the_order_of_appearance() -> None:
    tasks = stream(tasks="5,1/3")
    assert [task.labels for task in tasks] == [(5, 1), (3,)]
    raw, y = clouds().x_train, clouds().y_train
    first = tasks[0].train
    assert torch.equal(first.y, torch.tensor([0 if label == 5 else 1 for label in y[np.isin(y, [1, 5])]]))
    assert first.x.shape == (60, 8)
    assert len(raw) == 180


def test_shuffling_classes_follows_its_seed() -> None:
    assert stream(shuffle_classes=1).task_labels == stream(shuffle_classes=1).task_labels
    assert stream(shuffle_classes=1).task_labels != stream(shuffle_classes=2).task_labels


def test_the_first_task_can_be_larger_or_smaller() -> None:
    assert stream(first_classes=4, classes_per_task=1).task_labels == ((0, 1, 2, 3), (4,), (5,))
    assert stream(first_classes=1).task_labels == ((0,), (1, 2), (3, 4), (5,))
    assert stream(first_classes=9).task_labels == ((0, 1, 2, 3, 4, 5),)


def test_a_shuffled_order_is_the_one_that_published_protocols_have() -> None:
    """The order of CIFAR-100's classes that numpy gives for the seed 1993, as many papers print it."""
    config = StreamConfig(classes_per_task=5, first_classes=50, shuffle_classes=1993)
    tasks = split_classes(range(100), config, 20)
    assert [len(task) for task in tasks] == [50] + [5] * 10
    assert tasks[0][:10] == (68, 56, 78, 8, 23, 84, 90, 65, 74, 76)
    assert tasks[-1] == (67, 29, 49, 57, 33)


def test_labels_may_be_words() -> None:
    data = clouds(classes=3)
    named = np.array(["cat", "dog", "eel"])
    data = Dataset("pets", data.x_train, named[data.y_train], data.x_test, named[data.y_test])
    tasks = Stream("pets", data, split_classes(data.labels, StreamConfig(tasks="eel/cat,dog"), 2))
    assert tasks[1].labels == ("cat", "dog")
    assert sorted(tasks[1].test.y.unique().tolist()) == [1, 2]


@pytest.mark.parametrize(
    ("tasks", "words"),
    [
        ("0,1/1,2", "class 1 is in more than one task"),
        ("0,9", "tasks: unknown class '9'. Choose from 0, 1"),
        ("0,1//2", "unknown class ''"),
    ],
)
def test_cuts_that_make_no_sense(tasks: str, words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        stream(tasks=tasks)


@pytest.mark.parametrize(
    "settings",
    [
        {"classes_per_task": 0},
        {"validation": 1.0},
        {"validation": -0.1},
        {"tasks": "0/1", "classes_per_task": 2},
        {"tasks": "0/1", "shuffle_classes": 1},
        {"tasks": "0/1", "first_classes": 1},
        {"first_classes": 0},
        {"shuffle_classes": 2**32},
    ],
)
def test_settings_out_of_range(settings: dict[str, object]) -> None:
    with pytest.raises(SettingsError):
        StreamConfig(**settings)  # type: ignore[arg-type]


def test_normalization_looks_only_at_the_first_task() -> None:
    data = clouds()
    spoiled = Dataset("spoiled", data.x_train.copy(), data.y_train, data.x_test, data.y_test)
    spoiled.x_train[data.y_train >= 2] += 100
    cut = ((0, 1), (2, 3))
    assert torch.equal(Stream("a", data, cut)[0].train.x, Stream("b", spoiled, cut)[0].train.x)


def test_centering_mixes_one_constant_with_the_first_tasks_mean() -> None:
    data, cut = clouds(), ((0, 1), (2, 3))
    first = torch.from_numpy(data.x_train[data.y_train < 2])
    for share in (0.0, 0.5, 1.0):
        x = Stream("clouds", data, cut, preprocessing=centered(share))[0].train.x
        centered_x = first - (share * first.mean(0) + (1 - share) * first.mean())
        torch.testing.assert_close(x, centered_x / centered_x.square().mean().sqrt())


def test_published_constants_are_used() -> None:
    data = clouds()
    known = Dataset("known", data.x_train, data.y_train, data.x_test, data.y_test, scale=2.0, mean=1.0, std=4.0)
    x = Stream("known", known, ((0, 1),), preprocessing=centered(0.0))[0].test.x
    torch.testing.assert_close(x, (torch.from_numpy(data.x_test[data.y_test < 2]) * 2 - 1) / 4)


def test_a_validation_split_replaces_the_test_set_and_leaves_it_alone() -> None:
    data = clouds()
    held = data.hold_out(0.2)
    assert len(held.x_train) + len(held.x_test) == len(data.x_train)
    assert [int((held.y_test == label).sum()) for label in range(6)] == [6] * 6
    rows = {row.tobytes() for row in data.x_test}
    assert not any(row.tobytes() in rows for row in held.x_test)
    assert np.array_equal(held.x_test, data.hold_out(0.2).x_test)


def test_the_users_own_file(tmp_path: Path) -> None:
    tasks = build_stream(StreamConfig(data=clouds_file(tmp_path), classes_per_task=3))
    assert tasks.name == tasks.config.name == "custom"
    assert [task.labels for task in tasks] == [(0, 1, 2), (3, 4, 5)]


def test_streams_by_name() -> None:
    digits = build_stream(StreamConfig())
    assert len(digits) == 5
    assert digits.input_shape == (8, 8)
    with pytest.raises(
        SettingsError, match="unknown stream 'split-nothing', did you mean 'split-[a-z]*'. Choose from split-digits, "
    ):
        build_stream(StreamConfig(name="split-nothing"))
    split = {"split-digits", "split-mnist", "split-fashion-mnist", "split-cifar-10"}
    assert set(STREAMS) >= split | {"icifar-100", "cifar-10-100"}


def test_data_that_does_not_fit_together() -> None:
    data = clouds()
    with pytest.raises(DataError, match="one label per row"):
        Dataset("odd", data.x_train, data.y_train[:-1], data.x_test, data.y_test)
    with pytest.raises(DataError, match="they must agree"):
        Dataset("odd", data.x_train, data.y_train, data.x_test[:, :3], data.y_test)


def test_a_class_without_test_samples_is_refused() -> None:
    data = clouds()
    kept = data.y_test != 3
    partial = Dataset("partial", data.x_train, data.y_train, data.x_test[kept], data.y_test[kept])
    Stream("partial", partial, ((0, 1),))
    with pytest.raises(DataError, match="class 3 has no test samples"):
        Stream("partial", partial, ((0, 1), (2, 3)))


def test_features_with_scales_of_their_own_are_each_divided_by_their_own() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3)) * [1.0, 1000.0, 2.0] + [0.0, 5000.0, 1.0]
    x[:, 2] = 7.0
    unlike = Normalization.fit(x, PreprocessingConfig(standardize="features", centering=1.0))
    assert unlike(x).std(0).tolist() == pytest.approx([1.0, 1.0, 0.0], abs=0.01)
    x[0, 0] = 1e9  # an outlier changes nothing but itself
    spoiled = Normalization.fit(x, PreprocessingConfig())(x)
    assert spoiled[1:].std(0).tolist() == pytest.approx([1.0, 1.0, 0.0], abs=0.2)
    assert spoiled.max() == 10.0
    alike = Normalization.fit(x[1:, :1] * [1.0, 3.0], PreprocessingConfig(standardize="features", centering=1.0))
    assert alike.std.dim() == 0
    pixels = rng.normal(size=(50, 64)) * np.where(np.arange(64) < 12, 1e-6, 1.0)
    assert Normalization.fit(pixels, PreprocessingConfig()).std.dim() == 0
    few = rng.normal(size=(50, 3)) * [0.001, 1000.0, 1000.0]
    assert Normalization.fit(few, PreprocessingConfig()).std.dim() == 1
