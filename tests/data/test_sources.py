"""One door: every kind of source gives the same samples, splits and errors."""

import logging
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pytest
import torch
from PIL import Image
from torch.utils.data import TensorDataset

from spacenet.config.stream import DataConfig, StreamConfig
from spacenet.data import images, memory
from spacenet.data.memory import LIMIT_VARIABLE, Rows, allocate, take_rows
from spacenet.data.parts import Target
from spacenet.data.sources import read_dataset, read_labeled
from spacenet.data.stream import Stream
from spacenet.data.streams import build_stream
from spacenet.errors import DataError, SettingsError
from spacenet.utils import progress

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4)).astype(np.float32)
Y = np.arange(60) % 3


def write(folder: Path, kind: str) -> tuple[Path, dict[str, Any]]:
    path = folder / f"mine.{kind}"
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=Y)
    if kind == "csv":
        frame.to_csv(path, index=False)
    elif kind == "parquet":
        frame.to_parquet(path)
    elif kind == "npy":
        np.save(path, X)
        np.save(folder / "y.npy", Y)
        return path, {"label": str(folder / "y.npy")}
    else:
        np.savez(path, x=X, y=Y)
        return path, {}
    return path, {"label": "y"}


def streams_alike(one: Stream, other: Stream) -> bool:
    return all(
        torch.equal(getattr(a, part).x, getattr(b, part).x) and torch.equal(getattr(a, part).y, getattr(b, part).y)
        for a, b in zip(one, other, strict=True)
        for part in ("train", "test")
    )


@pytest.mark.parametrize("kind", ["npz", "npy", "csv", "parquet"])
def test_files_of_every_kind_give_the_same_stream(tmp_path: Path, kind: str) -> None:
    path, reading = write(tmp_path, kind)
    settings: dict[str, Any] = {"classes_per_task": 1, "test_fraction": 0.3, "split_seed": 5}
    wanted = Stream.from_arrays(X, Y, **settings)
    found = Stream.from_data(path, **reading, **settings)
    assert found.name == "mine"
    assert streams_alike(found, wanted)
    assert streams_alike(build_stream(found.config), wanted), "from its configuration"
    assert not streams_alike(Stream.from_arrays(X, Y, **{**settings, "split_seed": 6}), wanted)


def test_data_in_memory_of_every_kind() -> None:
    wanted = Stream.from_arrays(X, Y)
    frame = pd.DataFrame(X).assign(y=Y)
    tensors = TensorDataset(torch.from_numpy(X), torch.from_numpy(Y))
    for source, reading in (((X, Y), {}), (frame, {"label": "y"}), (frame, {"label": 4}), (tensors, {})):
        assert streams_alike(Stream.from_data(source, **reading), wanted)
    given = Stream.from_data((X, Y), test=(X[:9], Y[:9]))
    assert streams_alike(given, Stream.from_data((X, Y, X[:9], Y[:9])))
    assert streams_alike(given, Stream.from_data(frame, test=frame[:9], label="y"))
    with pytest.raises(SettingsError, match="label: is for tables"):
        Stream.from_data((X, Y), label="y")
    with pytest.raises(SettingsError, match="unknown setting 'lable', did you mean 'label'"):
        Stream.from_data((X, Y), lable="y")
    with pytest.raises(DataError, match="cannot make a stream from int; give a path, a data frame"):
        Stream.from_data(3)


def test_a_test_part_that_is_given(tmp_path: Path) -> None:
    path, reading = write(tmp_path, "csv")
    pd.DataFrame(X[:9] + 1, columns=list("abcd")).assign(y=Y[:9]).to_csv(tmp_path / "test.csv", index=False)
    found = read_labeled([path], DataConfig(**reading, test=tmp_path / "test.csv"))
    assert np.array_equal(found.for_evaluation()[0], X[:9] + 1)
    assert np.array_equal(found.x, X)
    assert np.array_equal(read_labeled([path], DataConfig(**reading)).for_evaluation()[0], X)
    with pytest.raises(SettingsError, match="test_fraction: goes with data that has no test part"):
        DataConfig(test=path, test_fraction=0.5)
    np.savez(tmp_path / "both.npz", x=X, y=Y, x_test=X, y_test=Y)
    with pytest.raises(SettingsError, match=r"test_fraction: .*x_test is the test part, so none is split off"):
        read_labeled([tmp_path / "both.npz"], DataConfig(test_fraction=0.5))


def test_several_sources_are_one(tmp_path: Path) -> None:
    paths = [write(tmp_path, kind)[0] for kind in ("csv", "parquet")]
    found = read_labeled(paths, DataConfig(label="y"))
    assert np.array_equal(found.x, np.concatenate([X, X]))
    assert found.y.tolist() == [*Y, *Y]


@pytest.mark.parametrize(
    ("name", "reading", "reason"),
    [
        ("missing.csv", {}, r"missing.csv: cannot be read \(No such file"),
        ("a.txt", {}, "a.txt: unknown kind of input"),
        ("a.png", {}, "a.png: holds no labels; use .npz"),
        ("mine.npz", {"label": "y"}, "label: is for tables"),
        ("mine.npy", {}, "label: name the .npy file with the labels"),
        ("mine.npy", {"label": "missing.npy"}, "missing.npy: no such file"),
    ],
)
def test_sources_that_do_not_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, reading: dict[str, Any], reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for kind in ("npz", "npy"):
        write(tmp_path, kind)
    (tmp_path / "a.txt").touch()
    (tmp_path / "a.png").touch()
    with pytest.raises((DataError, SettingsError), match=reason):
        read_labeled([name], DataConfig(**reading))


def test_settings_of_reading_are_for_data_of_ones_own() -> None:
    with pytest.raises(SettingsError, match="label: is for data of your own; split-digits is known by name"):
        StreamConfig(label="y")


def test_channels_that_come_last_are_moved(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    x = RNG.integers(0, 256, (12, 9, 8, 3), dtype=np.uint8)
    wanted = x.transpose(0, 3, 1, 2)
    np.savez(tmp_path / "a.npz", x=x, y=Y[:12])
    with caplog.at_level(logging.INFO, "spacenet"):
        assert np.array_equal(read_labeled([tmp_path / "a.npz"]).x, wanted)
        assert "images of the shape 9×8×3 have their channels last; they are moved to the front, 3×9×8" in caplog.text
    assert np.array_equal(read_labeled([tmp_path / "a.npz"], target=Target((3, 9, 8))).x, wanted)
    assert Stream.from_arrays(x, Y[:12]).input_shape == (3, 9, 8)
    assert Stream.from_arrays(x.transpose(0, 3, 1, 2), Y[:12]).input_shape == (3, 9, 8)
    assert Stream.from_arrays(x[:, :3], Y[:12]).input_shape == (3, 8, 3), "that may be 3 channels of 8×3"


# Memory


def test_what_is_too_large_for_memory_is_mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, reading = write(tmp_path, "csv")
    wanted = Stream.from_data(path, **reading)
    monkeypatch.setenv("SPACENET_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv(LIMIT_VARIABLE, "0")
    found = Stream.from_data(path, **reading)
    (file,) = (tmp_path / "cache" / "memory").iterdir()
    assert file.stat().st_size >= X.nbytes
    assert isinstance(found.dataset.x_train, Rows)
    assert isinstance(found.dataset.x_train.array, np.memmap)
    assert streams_alike(found, wanted)
    assert streams_alike(found.with_validation(0.5), wanted.with_validation(0.5))
    del found
    assert list((tmp_path / "cache" / "memory").iterdir()) == [], "it is removed with the last array that uses it"


def test_files_of_processes_that_were_killed_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPACENET_CACHE", str(tmp_path))
    monkeypatch.setenv(LIMIT_VARIABLE, "0")
    kept = allocate((3, 3), np.dtype(float), "x")
    (own,) = (tmp_path / "memory").iterdir()
    left = own.with_name(own.name.replace(str(os.getpid()), "999999999"))
    left.touch()
    allocate((3, 3), np.dtype(float), "x")
    assert list((tmp_path / "memory").iterdir()) == [own]
    assert kept.shape == (3, 3)


def test_the_disk_must_have_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPACENET_CACHE", str(tmp_path))
    with pytest.raises(DataError, match=r"mine: its samples take .* GiB, more than may be kept in memory"):
        allocate((10**9, 10**6), np.dtype(float), "mine")
    monkeypatch.setenv(LIMIT_VARIABLE, "much")
    with pytest.raises(SettingsError, match="SPACENET_MEMORY_LIMIT is 'much'; give a number of MiB"):
        memory.memory_limit()


def test_rows_of_rows() -> None:
    rows = take_rows(take_rows(X, np.array([5, 3, 1])), np.array([2, 0]))
    assert np.array_equal(rows[:], X[[1, 5]])
    assert np.array_equal(np.asarray(rows), X[[1, 5]])
    assert np.array_equal(rows[np.array([False, True])], X[[5]])
    assert (rows.shape, rows.size, rows.ndim, rows.dtype, len(rows)) == ((2, 4), 8, 2, X.dtype, 2)


# Folders


def fill(folder: Path, classes: int, each: int, size: tuple[int, int] = (9, 8)) -> Path:
    for number in range(classes):
        (folder / f"class-{number}").mkdir(parents=True)
        for image in range(each):
            pixels = RNG.integers(0, 256, (*size, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / f"class-{number}" / f"{image:02}.png")
    return folder


def test_images_are_read_in_order_by_several_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = fill(tmp_path / "photos", 3, 20)
    one_by_one = read_labeled([folder])
    monkeypatch.setattr(images, "MIN_BYTES", 0)
    threaded = read_labeled([folder])
    assert np.array_equal(threaded.x, one_by_one.x)
    assert threaded.y.tolist() == sorted(threaded.y.tolist())
    assert threaded.x.shape == (60, 3, 9, 8)


def test_folders_of_one_size(tmp_path: Path) -> None:
    train, test = fill(tmp_path / "train", 2, 6), fill(tmp_path / "test", 2, 2, (5, 5))
    with pytest.raises(DataError, match="Pass image_size") as error:
        read_dataset(StreamConfig(name="mine", data=train, test=test))
    assert "--image-size" in error.value.for_cli()
    found = read_dataset(StreamConfig(name="mine", data=train, test=test, image_size=(4, 6)))
    assert (found.x_train.shape, found.x_test.shape) == ((12, 3, 4, 6), (4, 3, 4, 6))
    assert found.scale == 1 / 255
    assert read_labeled([train], target=Target((9, 8), 1 / 255)).x.shape == (12, 9, 8)
    with pytest.raises(SettingsError, match="image_size: 1 2 3 is not a size in pixels"):
        read_labeled([train], image_size=(1, 2, 3))


def test_reading_shows_lines_where_there_is_no_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path, reading = write(tmp_path, "csv")
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    with caplog.at_level(logging.INFO, "spacenet"):
        read_labeled([path], DataConfig(**reading))
        assert caplog.text == ""
        read_labeled([path], DataConfig(**reading), progress=True)
    assert f"reading {path}: 60 of 62 rows" in caplog.text
