"""CSV tables with a column of texts."""

import io
from pathlib import Path
from typing import Any

import pytest

from spacenet.config.stream import DataConfig, TableConfig
from spacenet.data.inputs import read_inputs
from spacenet.data.parts import Target
from spacenet.data.sources import read_labeled
from spacenet.data.text_tables import STEP, text_part
from spacenet.errors import DataError, SettingsError
from tests.encoders.support import FEATURES, tiny_texts

TABLE = 'topic;id;text\nsea;1;"an eel; and\nanother ""eel"""\n\nfood;2;aioli\n'


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPACENET_CACHE", str(tmp_path / "cache"))


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "t.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def read(path: Path, label: str | None = "topic", *drop: str, header: bool | None = None) -> list[tuple[str, str]]:
    batches = list(text_part(path, label, drop, header).read())
    return [pair for texts, labels in batches for pair in zip(texts, labels, strict=True)]


def test_texts_with_several_lines_and_delimiters(tmp_path: Path) -> None:
    wanted = [('an eel; and\nanother "eel"', "sea"), ("aioli", "food")]
    assert read(write(tmp_path, TABLE), "topic", "id") == wanted
    assert read(write(tmp_path, "\ufeff" + TABLE.replace("\n", "\r\n")), "topic", "id")[1] == wanted[1]


def test_many_texts(tmp_path: Path) -> None:
    count = 2 * STEP + 3
    path = write(tmp_path, "text,topic\n" + "".join(f"text {number},{number % 3}\n" for number in range(count)))
    assert read(path) == [(f"text {number}", str(number % 3)) for number in range(count)]


def test_without_a_header(tmp_path: Path) -> None:
    assert read(write(tmp_path, "eel,sea\naioli,food\n"), "1", header=False) == [("eel", "sea"), ("aioli", "food")]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (TABLE, r"has 2 columns of inputs \(column 'id', column 'text'\); the encoder takes one, of texts"),
        ("topic,text\nsea,an eel, again\n", r"line 2 \(row 0\): has 3 cells; .* put texts in quotation marks"),
        ("topic,text\n,eel\n", r"line 2 \(row 0\), column 'topic': the label is missing"),
        ('topic,text\nsea,"eel\n', "is a quotation mark left open"),
        ("topic,text\nsea,é\n".encode("latin-1"), "is not text in UTF-8"),
        ("topic,text\n", "there is only a header"),
        (b"PK\x03\x04", "is an archive, not csv"),
        ("", "holds no samples"),
    ],
)
def test_what_can_be_wrong(tmp_path: Path, text: str | bytes, problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        read(write(tmp_path, text))


def test_a_label_is_needed(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="name the column of .* that has the labels"):
        read(write(tmp_path, "text\neel\n"), None)


def test_labeled_texts_are_read_as_features(tmp_path: Path) -> None:
    config: dict[str, Any] = {"label": "topic", "drop": "id"}
    found = read_labeled([write(tmp_path, TABLE)], DataConfig(**config), encoder=tiny_texts())
    assert found.x.tolist() == [[3, 5, 0, 1, 1, 0], [1, 0, 2, 1, 0, 0]]
    assert found.y.tolist() == ["sea", "food"]
    (tmp_path / "t.parquet").touch()
    with pytest.raises(DataError, match=r"texts are read from \.csv"):
        read_labeled([tmp_path / "t.parquet"], DataConfig(**config), encoder=tiny_texts())


@pytest.mark.parametrize("name", ["-", "t.csv"])
def test_texts_to_predict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    text = TABLE.replace("food;2", ";")
    write(tmp_path, text)
    stdin = io.BufferedReader(io.BytesIO(text.encode()))
    config = TableConfig(label="topic", drop="id")
    (chunk,) = read_inputs([name], Target((FEATURES,), encoder=tiny_texts()), stdin, config)
    assert chunk.x.tolist() == ['an eel; and\nanother "eel"', "aioli"]
    assert list(chunk.rows) == [0, 1]
    assert not stdin.closed
