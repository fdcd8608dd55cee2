"""Tables with labels: CSV and parquet files, data frames; what is a header, and what can be wrong."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pytest

from spacenet.config.stream import DataConfig, TableConfig
from spacenet.data import arrays
from spacenet.data.inputs import read_inputs
from spacenet.data.parts import Target
from spacenet.data.sources import LabeledData, read_labeled
from spacenet.data.stream import Stream
from spacenet.data.tables import is_header
from spacenet.errors import DataError, SettingsError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(7, 3)).astype(np.float32)
KINDS = ["ash", "oak", "elm", "ash", "oak", "elm", "ash"]
FRAME = pd.DataFrame(X, columns=["height", "width", "age"]).assign(kind=KINDS)


def csv(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def read(path: Path, **config: Any) -> LabeledData:
    return read_labeled([path], DataConfig(**config))


def same(found: LabeledData, labels: Any = KINDS) -> bool:
    return np.array_equal(found.x, X) and found.y.tolist() == list(labels)


@pytest.mark.parametrize("label", ["kind", "3", "-1"])
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_column_is_the_label(tmp_path: Path, suffix: str, label: str) -> None:
    path = tmp_path / f"trees.{suffix}"
    FRAME.to_csv(path, index=False) if suffix == "csv" else FRAME.to_parquet(path)
    found = read(path, label=label)
    assert same(found)
    assert found.x.dtype == np.float32


def test_rows_come_in_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "MAX_SAMPLES", 2)
    FRAME.to_csv(tmp_path / "a.csv", index=False)
    FRAME.to_parquet(tmp_path / "a.parquet")
    assert same(read(tmp_path / "a.csv", label="kind"))
    assert same(read(tmp_path / "a.parquet", label="kind"))
    assert read(tmp_path / "a.csv", label="kind").checksum == read(tmp_path / "a.parquet", label="kind").checksum


@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize("names", [["height", "width", "age"], [0, 1, 2]])
def test_a_data_frame_is_written_and_read(tmp_path: Path, names: list[Any], index: bool) -> None:
    """With or without an index, and with the names 0, 1, 2 that pandas gives."""
    frame = pd.DataFrame(X, columns=names)
    frame.to_csv(tmp_path / "x.csv", index=index)
    chunks = read_inputs([str(tmp_path / "x.csv")], Target((3,)), io.BufferedReader(io.BytesIO()))
    assert np.array_equal(np.concatenate([chunk.x for chunk in chunks]), X)
    frame.assign(kind=KINDS).to_csv(tmp_path / "xy.csv", index=index)
    assert same(read(tmp_path / "xy.csv", label="kind"))
    named = TableConfig(label="kind")
    chunks = read_inputs([str(tmp_path / "xy.csv")], Target((3,)), io.BufferedReader(io.BytesIO()), named)
    assert np.array_equal(np.concatenate([chunk.x for chunk in chunks]), X)


@pytest.mark.parametrize(
    ("first", "second", "label", "expected"),
    [
        ("a,b,c", "1,2,3", None, True),
        ("a,b,c", None, None, True),
        ("0,1,2", "5,6,7", None, True),
        ("0,1,2,3", None, None, True),
        (",0,1", "0,5,6", None, True),
        ("0,1", "5,6", None, False),  # could be a sample
        ("0,1,3", "5,6,7", None, False),
        ("0.0,1.0,2.0", "5,6,7", None, False),
        ("5,6,7", "0,1,2", None, False),
        ("1,2,oak", "3,4,elm", None, False),
        ("1,2,oak", "3,4,elm", "2", False),
        ("1990,1991,kind", "3,4,elm", "kind", True),
        ("1990,change", "3,4", None, True),
        ("1990,1991", "3,4", None, False),
    ],
)
def test_what_is_a_header(first: str, second: str | None, label: str | None, expected: bool) -> None:
    assert is_header(first.split(","), None if second is None else second.split(","), label) is expected


def test_a_header_may_be_told(tmp_path: Path) -> None:
    path = csv(tmp_path / "a.csv", "0,1,2\n5,6,7\n5,6,8\n")
    assert read(path, label="2").y.tolist() == [7, 8]
    assert read(path, label="2", header=False).y.tolist() == [2, 7, 8]
    path = csv(tmp_path / "b.csv", "1990,1991\n5,6\n5,7\n")
    assert read(path, label="1991", header=True).y.tolist() == [6, 7]


def test_columns_may_be_left_out(tmp_path: Path) -> None:
    FRAME.assign(id=range(7), note="x").to_csv(tmp_path / "a.csv", index=False)
    assert same(read(tmp_path / "a.csv", label="kind", drop="id, note"))
    assert same(read(tmp_path / "a.csv", label="kind", drop="4,5"))


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ("1 2 3", [1, 2, 3]),
        ("1.0 2.0 -3.", [1, 2, -3]),
        ("1 2 b", ["1", "2", "b"]),
        ('"a, b" c d', ["a, b", "c", "d"]),
        ("True False True", ["True", "False", "True"]),
    ],
)
def test_labels_that_are_numbers_are_integers(tmp_path: Path, labels: str, expected: list[Any]) -> None:
    words = ['"a, b"', "c", "d"] if "a, b" in labels else labels.split()
    path = csv(tmp_path / "a.csv", "x,y\n" + "".join(f"0.5,{word}\n" for word in words))
    assert read(path, label="y").y.tolist() == expected


@pytest.mark.parametrize(
    ("text", "label", "reason"),
    [
        ("a,b,y\n1,2,u\n1,,u\n", "y", r"line 3 \(row 1\), column 'b': the value is missing; fill it in or remove"),
        ("a,b,y\n1,2,u\n1,NA,u\n", "y", r"line 3 \(row 1\), column 'b': the value is missing"),
        ("a,b,y\n1,2,u\n1,nan,u\n", "y", r"line 3 \(row 1\), column 'b': the value is missing"),
        ("a,b,y\n1,2,u\n1,2,\n", "y", r"line 3 \(row 1\), column 'y': the label is missing"),
        (
            "a,b,y\n1,2,u\n1,male,u\n",
            "y",
            r"column 'b': 'male' is not a number; .*get_dummies.*drop leaves",
        ),
        ("a,b,y\n1,inf,u\n", "y", "column 'b': the value is infinite or too large"),
        ("a,b,y\n1,2,u\n1,2\n", "y", r"line 3 \(row 1\): has 2 cells; the lines before have 3"),
        ("a,y\n1,0.5\n1,2\n", "y", "the labels are numbers such as 0.5; integers or words are needed"),
        ("a,b,y\n1,2,u\n", None, "label: name the column of .* that has the labels; its columns are a, b, y"),
        ("1,2,3\n1,2,4\n", None, "its columns are 0 to 2"),
        ("a,b,y\n1,2,u\n", "z", "label: .* has no column 'z'; its columns are a, b, y"),
        ("a,b,y\n", "y", "holds no samples; there is only a header"),
        ("y\n1\n", "y", "has no columns besides the label"),
        ("PAR1....", "y", "is an archive.*parquet"),
    ],
)
def test_tables_that_are_wrong(tmp_path: Path, text: str, label: str | None, reason: str) -> None:
    with pytest.raises((DataError, SettingsError), match=reason):
        read(csv(tmp_path / "a.csv", text), label=label)


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        ([1.0, None, 2.0], "column 'a', row 1: the value is missing"),
        (["u", "v", "w"], "column 'a', row 0: 'u' is not a number"),
        ([1.0, np.inf, 2.0], "column 'a', row 1: the value is infinite or too large"),
    ],
)
def test_other_tables_that_are_wrong(tmp_path: Path, column: list[Any], reason: str) -> None:
    frame = pd.DataFrame({"a": column, "b": [1, 2, 3], "y": [0, 1, 0]})
    frame.to_parquet(tmp_path / "a.parquet")
    with pytest.raises(DataError, match=f"a.parquet, {reason}"):
        read(tmp_path / "a.parquet", label="y")
    with pytest.raises(DataError, match=f"custom, {reason}"):
        Stream.from_data(frame, label="y")
    for name in ("y", "z"):
        with pytest.raises(DataError, match=r"row 1, column 'y': the label is missing"):
            Stream.from_data(frame.assign(a=1, y=["u", None, "v"]).rename(columns={"b": "z"}), label="y", drop=name * 0)


def test_a_parquet_file_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    FRAME.to_parquet(path)
    whole = path.read_bytes()
    for content in (b"", b"text", whole[:-20], whole[:50] + whole[200:]):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"a.parquet: not a parquet file that can be read"):
            read(path, label="kind")


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_labels_may_be_missing_where_they_are_to_be_predicted(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.{suffix}"
    frame = FRAME.assign(kind=None)
    frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path)
    chunks = read_inputs([str(path)], Target((3,)), io.BufferedReader(io.BytesIO()), TableConfig(label="kind"))
    assert np.array_equal(np.concatenate([chunk.x for chunk in chunks]), X)


def test_the_columns_of_the_test_data_are_the_same(tmp_path: Path) -> None:
    FRAME.to_csv(tmp_path / "a.csv", index=False)
    FRAME[["width", "height", "age", "kind"]].to_csv(tmp_path / "b.csv", index=False)
    with pytest.raises(DataError, match=r"b.csv: its columns differ from .*a.csv: 'width' instead of 'height'"):
        read(tmp_path / "a.csv", label="kind", test=tmp_path / "b.csv")


def test_a_table_for_a_model(tmp_path: Path) -> None:
    FRAME.to_csv(tmp_path / "a.csv", index=False)
    assert read_labeled([tmp_path / "a.csv"], DataConfig(label="kind"), target=Target((1, 3))).x.shape == (7, 1, 3)
    with pytest.raises(DataError, match="has 3 columns of inputs; the model takes 4"):
        read_labeled([tmp_path / "a.csv"], DataConfig(label="kind"), target=Target((4,)))
