"""The user's own npz files, and those that are not what they should be."""

import contextlib
import io
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

from spacenet.config.stream import StreamConfig
from spacenet.data import array_parts
from spacenet.data.dataset import Dataset
from spacenet.data.sources import read_dataset, read_labeled
from spacenet.errors import DataError

RNG = np.random.default_rng(0)


def load_npz(path: Path) -> Dataset:
    return read_dataset(StreamConfig(name="mine", data=path))


def arrays(**changes: object) -> dict[str, object]:
    good: dict[str, object] = {
        "x_train": RNG.integers(0, 256, (6, 4, 4), dtype=np.uint8),
        "y_train": np.array([0, 1, 2, 0, 1, 2]),
        "x_test": RNG.integers(0, 256, (3, 4, 4), dtype=np.uint8),
        "y_test": np.array([0, 1, 2]),
    }
    return {key: value for key, value in (good | changes).items() if value is not None}


def save(path: Path, **changes: object) -> Path:
    np.savez_compressed(path, **arrays(**changes))  # type: ignore[arg-type]
    return path


def test_npz_of_bytes(tmp_path: Path) -> None:
    data = load_npz(save(tmp_path / "mine.npz"))
    assert data.name == "mine"
    assert data.scale == 1 / 255
    assert data.mean is None
    assert data.std is None
    assert data.x_train.shape == (6, 4, 4)
    assert data.labels == [0, 1, 2]


def test_npz_of_floats_and_words(tmp_path: Path) -> None:
    x = RNG.normal(size=(3, 5)).astype(">f4")
    words = np.array(["cat", "dog", "eel"])
    data = load_npz(save(tmp_path / "a.npz", x_train=x, x_test=x, y_train=words, y_test=words))
    assert data.scale == 1.0
    assert data.labels == ["cat", "dog", "eel"]
    assert data.x_train.dtype == np.float32
    assert data.x_train.dtype.isnative
    assert np.array_equal(data.x_train, x)


def bad_float(value: float) -> np.ndarray:
    x = np.zeros((6, 4, 4), dtype=np.float32)
    x[4, 1, 1] = value
    return x


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"y_train": None}, "has no y_train; it holds x_test, x_train, y_test"),
        ({"y_test": None}, "has one of x_test and y_test; give both or neither"),
        ({"x_train": np.array([[1], [1, 2]], dtype=object)}, "x_train is an object array"),
        ({"y_train": np.array([None] * 6)}, "y_train is an object array"),
        ({"x_train": bad_float(np.nan)}, "x_train has NaN or infinite values, the first in row 4"),
        ({"x_train": bad_float(-np.inf)}, "x_train has NaN or infinite values"),
        ({"x_train": np.array([["a"]] * 6)}, "x_train holds <U1 values; numbers are needed"),
        ({"x_train": np.zeros((6, 2), dtype=complex)}, "x_train holds complex128 values"),
        ({"x_train": np.zeros(6)}, r"x_train has the shape \(6,\)"),
        ({"x_train": np.array(1.0)}, r"x_train has the shape \(\)"),
        ({"x_train": np.zeros((6, 0))}, r"x_train has the shape \(6, 0\)"),
        ({"y_train": np.zeros((6, 3), dtype=int)}, r"y_train has the shape \(6, 3\)"),
        ({"y_train": np.zeros(6)}, r"y_train holds float64 labels.*astype\(int\)"),
        ({"y_train": np.zeros(5, dtype=int)}, "x_train has 6 samples, and there are 5 labels"),
        ({"x_test": np.zeros((3, 5, 4), dtype=np.uint8)}, "they must agree"),
        ({"x_test": np.zeros((3, 4, 4))}, "x_train holds uint8 values and x_test float64"),
        ({"y_test": np.array(["0", "1", "2"])}, "y_train holds int64 labels and y_test <U1"),
    ],
)
def test_npz_with_wrong_arrays(tmp_path: Path, changes: dict[str, object], reason: str) -> None:
    path = save(tmp_path / "bad.npz", **changes)
    with pytest.raises(DataError, match=f"{path}: .*{reason}"):
        load_npz(path)


def test_npz_that_is_no_archive(tmp_path: Path) -> None:
    path = tmp_path / "bad.npz"
    with pytest.raises(DataError, match="No such file"):
        load_npz(path)
    for content in (b"", b"text", pickle.dumps([1]), save(tmp_path / "whole.npz").read_bytes()[:-40]):
        path.write_bytes(content)
        with pytest.raises(DataError, match=f"{path}: not an npz archive.*savez"):
            load_npz(path)


def member(array: object, **header: object) -> bytes:
    """An .npy file, with the entries of its header changed."""
    stream = io.BytesIO()
    value = np.asarray(array)
    np.lib.format.write_array_header_1_0(stream, np.lib.format.header_data_from_array_1_0(value) | header)
    return stream.getvalue() + value.tobytes()


def write_members(path: Path, **changes: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for key, value in arrays().items():
            archive.writestr(f"{key}.npy", changes.get(key, member(value)))
    return path


@pytest.mark.parametrize(
    "shape",
    [(10**15, 4, 4), (2**62, 4), (-6, -4, 4), (6, 4, 3)],
)
def test_npz_with_a_made_up_shape(tmp_path: Path, shape: tuple[int, ...]) -> None:
    path = write_members(tmp_path / "bad.npz", x_train=member(np.zeros((6, 4, 4), np.uint8), shape=shape))
    with pytest.raises(DataError, match="x_train claims to hold .*the file is damaged"):
        load_npz(path)


def test_npz_bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_members(tmp_path / "bad.npz", x_train=member(np.zeros((6, 1000, 1000), np.uint8)))
    assert path.stat().st_size < 20_000
    monkeypatch.setattr(array_parts, "MAX_BYTES", 1_000_000)
    with pytest.raises(DataError, match="x_train would take .* GiB, more than"):
        load_npz(path)


def test_npz_damaged_within(tmp_path: Path) -> None:
    npy = b"\x93NUMPY"
    headers = [b"\x01\x00\x10\x00{'a", b"\x01\x00\x05\x00{'a'(", b"\x01\x00\x03\x00'''", b"\x03\x00" + bytes(40)]
    for content in (b"", b"nonsense", *(npy + header for header in headers)):
        with pytest.raises(DataError, match="damaged"):
            load_npz(write_members(tmp_path / "bad.npz", x_train=content))
    path = write_members(tmp_path / "bad.npz")
    raw = bytearray(path.read_bytes())
    raw[200] ^= 0xFF
    path.write_bytes(raw)
    with pytest.raises(DataError, match="damaged|has "):
        load_npz(path)


def test_npz_made_of_anything(tmp_path: Path) -> None:
    """Flipping any byte of an archive gives a data set or a DataError, never another exception."""
    whole = save(tmp_path / "whole.npz").read_bytes()
    path = tmp_path / "flipped.npz"
    for position in range(0, len(whole), 7):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 0x5A]) + whole[position + 1 :])
        with contextlib.suppress(DataError):
            load_npz(path)


def test_other_arrays_from_an_archive(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    x, y = RNG.normal(size=(3, 5)), np.array(["a", "b", "a"])
    np.savez(path, x=x, y=y, z=np.array([None]))  # z is not even looked at
    read = read_labeled([path])
    assert np.array_equal(read.x, x)
    assert np.array_equal(read.y, y)
    assert read.x_test is None
    np.savez(path, x=x)
    with pytest.raises(DataError, match=r"has no x_train, y_train; it holds x: .*x_train=…, y_train=…\)"):
        read_labeled([path])
    np.savez(path, x=x, y=np.array([None] * 3))
    with pytest.raises(DataError, match=f"^{path}: y is an object array"):
        read_labeled([path])


def test_a_header_is_not_read_beyond_its_limit(tmp_path: Path) -> None:
    content = b"\x93NUMPY\x02\x00" + (2**31).to_bytes(4, "little") + bytes(1000)
    with pytest.raises(DataError, match="a header of 2147483648 bytes"):
        load_npz(write_members(tmp_path / "bad.npz", x_train=content))
