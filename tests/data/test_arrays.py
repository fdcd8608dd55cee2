"""Samples from npy, npz and csv: every sort of them, memory, and what can be wrong."""

import gzip
import io
import tracemalloc
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from spacenet.data import arrays
from spacenet.data.inputs import read_inputs
from spacenet.data.parts import Target
from spacenet.errors import DataError
from tests.data.input_files import (
    COLOR,
    FLAT,
    GREY,
    LINES,
    NOTHING,
    RNG,
    X,
    csv_file,
    npy,
    npy_bytes,
    read,
    values,
)


@pytest.mark.parametrize("keys", [("other", "x"), ("x_test", "y_test"), ("only",)])
def test_npz(tmp_path: Path, keys: tuple[str, ...]) -> None:
    held = {key: np.zeros(3) if key in ("other", "y_test") else X for key in keys}
    np.savez_compressed(tmp_path / "a.npz", **held)  # type: ignore[arg-type]
    (chunk,) = read(tmp_path / "a.npz")
    assert np.array_equal(chunk.x, X)
    assert list(chunk.rows) == [0, 1, 2, 3, 4]
    assert set(chunk.inputs) == {str(tmp_path / "a.npz")}


@pytest.mark.parametrize(
    "x",
    [
        X,
        X.astype(">f8"),
        np.asfortranarray(X),
        X.reshape(5, 8, 1),
        X.astype(np.float16),
        X > 0,
        X.astype(np.longdouble),
    ],
    ids=["float32", "big-endian", "by columns", "axis of 1", "float16", "bool", "wide"],
)
def test_npy_of_every_sort(tmp_path: Path, x: np.ndarray) -> None:
    assert np.array_equal(values(read(npy(tmp_path / "a.npy", x))), x.reshape(5, 8))


def test_one_sample_alone_and_none(tmp_path: Path) -> None:
    assert np.array_equal(values(read(npy(tmp_path / "a.npy", X[0]))), X[:1])
    with pytest.raises(DataError, match="b.npy: holds no samples"):
        read(npy(tmp_path / "b.npy", X[:0]))
    flat = RNG.integers(0, 256, 24, dtype=np.uint8)
    assert np.array_equal(values(read(npy(tmp_path / "c.npy", flat), shape=GREY))[0], flat.reshape(GREY))
    assert np.array_equal(values(read(npy(tmp_path / "d.npy", flat.reshape(GREY)), shape=GREY))[0], flat.reshape(GREY))


def test_flat_rows_take_the_models_shape(tmp_path: Path) -> None:
    flat = RNG.integers(0, 256, (3, 72), dtype=np.uint8)
    assert np.array_equal(values(read(npy(tmp_path / "a.npy", flat), shape=COLOR)), flat.reshape(3, *COLOR))
    lines = "\n".join(" ".join(map(str, row)) for row in flat.tolist())
    assert np.array_equal(values(read(csv_file(tmp_path / "a.csv", lines), shape=COLOR)), flat.reshape(3, *COLOR))


@pytest.mark.parametrize(
    "text",
    [
        LINES,
        "a,b,c,d,e,f,g,h\n" + LINES,
        "\ufeff" + LINES.replace("\n", "\r\n\r\n"),
        LINES.replace(",", ";"),
        LINES.replace(",", "\t"),
        LINES.replace(",", "   "),
        "".join(",".join(f'"{value!r}"' for value in row) + "\n" for row in X.astype(float).tolist()),
        LINES.rstrip("\n"),
    ],
    ids=["plain", "heading", "excel", "semicolon", "tab", "blanks", "quoted", "no last newline"],
)
def test_csv_of_every_sort(tmp_path: Path, text: str) -> None:
    (chunk,) = read(csv_file(tmp_path / "a.csv", text))
    assert np.array_equal(chunk.x, X)
    assert list(chunk.rows) == [0, 1, 2, 3, 4]


def test_chunks_are_bounded_by_number_and_by_size() -> None:
    assert arrays.samples_per_chunk((8,)) == 1024
    assert arrays.samples_per_chunk((3, 1000, 1000)) == 1
    assert arrays.samples_per_chunk((3, 224, 224)) == 13


class _Endless(io.RawIOBase):
    """A stream that is made while it is read."""

    def __init__(self, parts: Iterator[bytes]) -> None:
        self.parts, self.rest = parts, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        self.rest = self.rest or next(self.parts, b"")
        count = min(len(buffer), len(self.rest))
        buffer[:count], self.rest = self.rest[:count], self.rest[count:]
        return count


def _peak(parts: Iterator[bytes], count: int) -> int:
    stream = io.BufferedReader(_Endless(parts))
    tracemalloc.start()
    try:
        assert sum(len(chunk.x) for chunk in read_inputs(["-"], Target(FLAT), stream)) == count
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_stream() -> None:
    rows = 200_000  # 12.8 MB as 64-bit numbers

    def npy_parts() -> Iterator[bytes]:
        header = io.BytesIO()
        np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (rows, 8)})
        yield header.getvalue()
        yield from (bytes(64 * 1000) for _ in range(rows // 1000))

    assert _peak(npy_parts(), rows) < 1_000_000
    lines = 20_000  # 4 MB of text
    long = (b"1." + b"1" * 22 + b",") * 7 + b"1" * 24 + b"e-9\n"
    assert _peak((long * 100 for _ in range(lines // 100)), lines) < 1_000_000


def test_an_archive_is_read_bit_by_bit(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", x=np.zeros((200_000, 8), np.float64))
    chunks = read_inputs([str(tmp_path / "a.npz")], Target(FLAT), NOTHING)
    tracemalloc.start()
    try:
        assert sum(len(chunk.x) for chunk in chunks) == 200_000
        assert tracemalloc.get_traced_memory()[1] < 1_500_000
    finally:
        tracemalloc.stop()


def test_a_line_without_end_is_not_read_to_its_end() -> None:
    def parts() -> Iterator[bytes]:
        for _ in range(3):
            yield b"1" * 50_000
        pytest.fail("more was read than a line can have")

    with pytest.raises(DataError, match="standard input, line 1: is too long for 8 numbers"):
        list(read_inputs(["-"], Target(FLAT), io.BufferedReader(_Endless(parts()))))


def bad(value: float) -> np.ndarray:
    x = X.astype(np.float64)
    x[3, 2] = value
    return x


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (npy_bytes(bad(np.nan)), "row 3 has a value that is NaN, infinite or too large"),
        (npy_bytes(bad(-np.inf)), "row 3"),
        (npy_bytes(bad(1e300)), "row 3"),
        (npy_bytes(X.astype(complex)), "holds complex128 values; numbers are needed"),
        (npy_bytes(X.astype("U4")), "holds <U4 values"),
        (npy_bytes(X[:, :7]), r"samples have the shape \(7,\); the model takes \(8,\)"),
        (npy_bytes(np.array(1.0)), r"samples have the shape \(\)"),
        (npy_bytes(X)[:-5], "ends after 4 of its 5 samples; it is cut off"),
        (npy_bytes(X) + b"!", "has more bytes after its last sample"),
        (npy_bytes(X)[:50], "damaged"),
        (npy_bytes(X).replace(b"(5, 8), }", b"(-5,8), }"), r"has the shape \(-5, 8\); the file is damaged"),
        (npy_bytes(np.asfortranarray(X))[:-5], "5 bytes are missing"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff", "a header of 4294967295 bytes"),
        (b"\x93NUMPY\x03\x00" + bytes(90), "version"),
        (b"", "damaged"),
        (b"text", "damaged"),
    ],
)
def test_npy_that_is_wrong(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "bad.npy"
    path.write_bytes(content)
    with pytest.raises(DataError, match=f"bad.npy.*({reason})"):
        read(path)


def test_objects_are_never_opened(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="object array, which could run code"):
        read(npy(tmp_path / "bad.npy", np.array([[print]], dtype=object)))
    np.savez(tmp_path / "bad.npz", x=np.array([[print]], dtype=object))
    with pytest.raises(DataError, match="bad.npz: x is an object array, which could run code"):
        read(tmp_path / "bad.npz")


def test_the_row_counts_from_the_beginning_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "MAX_SAMPLES", 2)
    with pytest.raises(DataError, match="row 3 has"):
        read(npy(tmp_path / "bad.npy", bad(np.nan)))


def test_columns_first_are_read_only_up_to_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "MAX_COLUMN_MAJOR", 100)
    with pytest.raises(DataError, match=r"column-major.*numpy\.ascontiguousarray"):
        read(npy(tmp_path / "bad.npy", np.asfortranarray(X)))


def test_channels_may_come_last(tmp_path: Path) -> None:
    x = RNG.integers(0, 256, (2, 4, 6, 3), dtype=np.uint8)
    assert np.array_equal(values(read(npy(tmp_path / "a.npy", x), shape=COLOR)), x.transpose(0, 3, 1, 2))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1,2,3\n", r"line 1 \(row 0\): has 3 numbers; the model takes 8"),
        (LINES + "1,2,3,4,5,6,7,8,9\n", r"line 6 \(row 5\): has 9 cells; the lines before have 8"),
        ("1,2,3,4,x,6,7,8\n", r"line 1 \(row 0\), column 4: 'x' is not a number; .*names the columns"),
        (LINES + "a,b,c,d,e,f,g,h\n", r"line 6 \(row 5\), column 0: 'a' is not a number"),
        (LINES + "1,2,,4,5,6,7,8\n", r"line 6 \(row 5\), column 2: the value is missing; .*fillna"),
        (LINES + "1,2,nan,4,5,6,7,8\n", r"line 6 \(row 5\), column 2: the value is missing"),
        (LINES + "1,2,1e99,4,5,6,7,8\n", r"line 6 \(row 5\), column 2: the value is infinite or too large"),
        ("1,2,3,4,5,6,7,\x1b[31m\n", r"'\\x1b\[31m' is not a number"),
        ('"a,b,c,d,e,f,g,h\n' + LINES, "line 1: not csv"),  # a quote that is not closed would swallow what follows
        (LINES + '"1,2,3,4,5,6,7,8\n', "line 6: not csv"),
    ],
)
def test_csv_that_is_wrong(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(DataError, match=f"bad.csv, {reason}|bad.csv, .*{reason}"):
        read(csv_file(tmp_path / "bad.csv", text))


def test_csv_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    for content in (bytes(range(256)) * 9, b"\xff\xfe1\x00,\x002\x00", b'"' * 300 + b"\n1"):
        path.write_bytes(LINES.encode() + content)
        with pytest.raises(DataError, match="bad.csv"):
            read(path)


@pytest.mark.parametrize("text", ["", "\n\n", "a,b,c,d,e,f,g,h\n"], ids=["empty", "blank", "header"])
def test_csv_without_samples(tmp_path: Path, text: str) -> None:
    with pytest.raises(DataError, match="a.csv: holds no samples"):
        read(csv_file(tmp_path / "a.csv", text))
    with pytest.raises(DataError, match="standard input: holds no samples"):
        read("-", stdin=text.encode())


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_csv_that_is_compressed(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(gzip.compress(LINES.encode()))
    with pytest.raises(DataError, match="is compressed with gzip; unpack it first"):
        read(tmp_path / name)


def test_npz_that_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "bad.npz"
    np.savez(path, a=X, b=X)
    with pytest.raises(DataError, match="bad.npz: holds a, b; the array of samples must be named x"):
        read(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("notes.txt", "nothing")
    with pytest.raises(DataError, match="holds nothing; the array"):
        read(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", npy_bytes(X).replace(b"(5, 8)", b"(9, 8)"))
    with pytest.raises(DataError, match="the file is damaged"):
        read(path)
    with pytest.raises(DataError, match="standard input: is an archive.*pass the name of the .npz file"):
        read("-", stdin=path.read_bytes())
    path.write_bytes(b"no archive")
    with pytest.raises(DataError, match="not an npz archive"):
        read(path)


def test_an_archive_whose_checksum_does_not_hold(tmp_path: Path) -> None:
    path = tmp_path / "bad.npz"
    np.savez(path, x=X)
    content = bytearray(path.read_bytes())
    content[content.index(X[0].tobytes())] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match="bad.npz: damaged .*CRC"):
        read(path)
