"""The user's own npz files, and those that are not what they should be."""

import contextlib
import io
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

from spacenet.data import arrays as npy_files
from spacenet.data.arrays import read_arrays
from spacenet.data.user_data import load_npz
from spacenet.errors import DataError

RNG = np.random.default_rng(0)


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
        ({"y_test": None}, "has no y_test; it holds x_test, x_train, y_train"),
        ({"x_train": np.array([[1], [1, 2]], dtype=object)}, "x_train is an object array"),
        ({"y_train": np.array([None] * 6)}, "y_train is an object array"),
        ({"x_train": bad_float(np.nan)}, "x_train has NaN or infinite values in 1 of its 6 samples.*row 4"),
        ({"x_train": bad_float(-np.inf)}, "x_train has NaN or infinite values"),
        ({"x_train": np.array([["a"]] * 6)}, "x_train holds <U1 values; numbers are needed"),
        ({"x_train": np.zeros((6, 2), dtype=complex)}, "x_train holds complex128 values"),
        ({"x_train": np.zeros(6)}, r"x_train has the shape \(6,\)"),
        ({"x_train": np.array(1.0)}, r"x_train has the shape \(\)"),
        ({"x_train": np.zeros((6, 0))}, r"x_train has the shape \(6, 0\)"),
        ({"y_train": np.zeros((6, 3), dtype=int)}, r"y_train has the shape \(6, 3\)"),
        ({"y_train": np.zeros(6)}, r"y_train holds float64 labels.*astype\(int\)"),
        ({"y_train": np.zeros(5, dtype=int)}, r"x_train has the shape \(6, 4, 4\) and y_train \(5,\)"),
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
    with pytest.raises(DataError, match="no such file"):
        load_npz(path)
    for content in (b"", b"text", pickle.dumps([1]), save(tmp_path / "whole.npz").read_bytes()[:-40]):
        path.write_bytes(content)
        with pytest.raises(DataError, match=f"{path}: not an npz archive.*savez"):
            load_npz(path)
    with pytest.raises(DataError, match="not a file"):
        load_npz(tmp_path)


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
    monkeypatch.setattr(npy_files, "MAX_BYTES", 1_000_000)
    monkeypatch.setattr(np, "load", lambda *args, **kwargs: pytest.fail("the bomb was opened"))
    with pytest.raises(DataError, match="its arrays would take .* GiB in memory"):
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
    np.savez(path, x=x, y=y, x_test=x, z=np.array([None]))
    read = read_arrays(path, ("x_train", "y_train"), ("x", "y"), optional=("x_test", "y_test"))
    assert list(read) == ["x", "y", "x_test"]  # and z is not even looked at
    assert np.array_equal(read["x"], x)
    assert np.array_equal(read["y"], y)
    with pytest.raises(DataError, match=r"has no x_train, y_train; it holds x, x_test, y, z: .*x_train=…, y_train=…\)"):
        read_arrays(path, ("x_train", "y_train"))
    with pytest.raises(DataError, match=f"^{path}: z is an object array"):
        read_arrays(path, ("x", "z"))


def test_a_header_is_not_read_beyond_its_limit(tmp_path: Path) -> None:
    content = b"\x93NUMPY\x02\x00" + (2**31).to_bytes(4, "little") + bytes(1000)
    with pytest.raises(DataError, match="a header of 2147483648 bytes"):
        load_npz(write_members(tmp_path / "bad.npz", x_train=content))
