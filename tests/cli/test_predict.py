import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from spacenet.cli.main import main
from spacenet.config.model import PreprocessingConfig
from spacenet.data import arrays
from spacenet.model.file import save_model
from spacenet.model.model import Model
from tests.model.support import blobs, density_model, model, new_model
from tests.warm import start

X, _ = blobs([0, 1, "two", "three"], per_class=3)


@pytest.fixture(scope="module")
def learned() -> Model:
    return model([0, 1], ["two", "three"])


@pytest.fixture
def file(tmp_path: Path, learned: Model) -> Path:
    save_model(tmp_path / "m.safetensors", learned)
    np.save(tmp_path / "x.npy", X)
    return tmp_path / "m.safetensors"


def answers(file: Path, *more: str) -> int:
    return main(["predict", str(file), *more])


def feed(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    raw = io.BufferedReader(io.BytesIO(content))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(raw))


def test_text(file: Path, tmp_path: Path, learned: Model, capsys: pytest.CaptureFixture[str]) -> None:
    assert answers(file, str(tmp_path / "x.npy")) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line[0] for line in lines] == [str(row) for row in range(12)]
    probabilities = learned.predict_proba(X)
    best = [str(learned.classes[number]) for number in probabilities.argmax(1)]
    assert [line[1] for line in lines] == best
    assert [line[2:] for line in lines] == [[f"{100 * share:.2f}", "%"] for share in probabilities.max(1)]


def test_several_inputs_are_told_apart(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert answers(file, str(tmp_path / "x.npy"), str(tmp_path / "x.npy"), "--top", "2") == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line[0] for line in lines] == [f"{tmp_path}/x.npy[{row}]" for row in [*range(12)] * 2]
    assert all(float(line[2]) >= float(line[5]) for line in lines)


def test_csv(file: Path, tmp_path: Path, learned: Model, capsys: pytest.CaptureFixture[str]) -> None:
    assert answers(file, str(tmp_path / "x.npy"), "--format", "csv", "--top", "9") == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    names = [f"{word}{n}" for n in ("", "_2", "_3", "_4") for word in ("label", "probability")]
    assert list(rows[0]) == ["input", "row", *names]  # no more than there are classes
    order = np.argsort(-learned.predict_proba(X))
    for row, number in zip(rows, order, strict=True):
        assert [row["label"], row["label_4"]] == [str(learned.classes[number[0]]), str(learned.classes[number[3]])]
    assert sum(float(rows[0][name]) for name in names[1::2]) == pytest.approx(1, abs=1e-5)


def test_jsonl_keeps_the_types_of_labels(
    file: Path, learned: Model, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    content = io.BytesIO()
    np.save(content, X)
    feed(monkeypatch, content.getvalue())
    assert answers(file, "-", "--format", "jsonl") == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["row"] for each in found] == list(range(12))
    assert {each["input"] for each in found} == {"-"}
    assert [each["label"] for each in found] == [learned.classes[n] for n in learned.predict_proba(X).argmax(1)]
    assert "top" not in found[0]
    feed(monkeypatch, b"1,2,3,4,5,6,7,8\n")
    assert answers(file, "-", "--format", "jsonl", "--top", "3") == 0
    (only,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(only["top"]) == 3
    assert only["top"][0] == {"label": only["label"], "probability": only["probability"]}


def test_images(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = new_model((4, 4), PreprocessingConfig(1 / 255))
    x = np.repeat(np.array([0, 250], np.uint8), 20)[:, None, None] + np.zeros((1, 4, 4), np.uint8)
    made.learn(x, np.repeat(["dark", "bright"], 20))
    save_model(tmp_path / "m", made)
    (tmp_path / "in").mkdir()
    Image.fromarray(x[0]).save(tmp_path / "in" / "a.png")
    Image.fromarray(x[-1]).resize((9, 9)).save(tmp_path / "in" / "b.png")
    assert answers(tmp_path / "m", str(tmp_path / "in"), "--resize") == 0
    lines = [line.split()[:2] for line in capsys.readouterr().out.splitlines()]
    assert lines == [[f"{tmp_path}/in/a.png", "dark"], [f"{tmp_path}/in/b.png", "bright"]]
    np.save(tmp_path / "scaled.npy", np.linspace(0, 1, 16).reshape(1, 16))
    assert answers(tmp_path / "m", str(tmp_path / "scaled.npy")) == 0
    assert "warning: the model learned from bytes" in capsys.readouterr().err


def test_out_is_there_as_a_whole_or_not_at_all(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "answers.csv"
    assert answers(file, str(tmp_path / "x.npy"), "--out", str(out), "--format", "csv") == 0
    assert f"12 predictions are in {out}" in capsys.readouterr().out
    assert len(out.read_text().splitlines()) == 13
    before = sorted(tmp_path.iterdir())
    np.save(tmp_path / "bad.npy", np.concatenate([np.zeros((2000, 8)), np.full((1, 8), np.nan)]))
    assert answers(file, str(tmp_path / "bad.npy"), "--out", str(out)) == 2
    assert "bad.npy: row 2000 has a value that is NaN" in capsys.readouterr().err
    assert len(out.read_text().splitlines()) == 13
    assert sorted(tmp_path.iterdir()) == sorted([*before, tmp_path / "bad.npy"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "give at least one input"),
        (["x.npy", "--top", "0"], "--top: 0 is out of range (1 or more)"),
        (["missing.npy"], "missing.npy: cannot be read"),
        (["x.npy", "--out", "."], "out: . is a folder"),
        (["x.npy", "--out", "no/where"], "out: no is not a folder that can be written to"),
    ],
)
def test_bad_input_gets_one_line_and_exit_code_2(
    file: Path,
    arguments: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    assert answers(file, *arguments) == 2
    out, err = capsys.readouterr()
    assert words in err
    assert "Traceback" not in err
    assert out == ""
    assert sorted(tmp_path.iterdir()) == before


def test_scores_that_are_no_numbers(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Model, "predict_proba", lambda self, x: np.where(np.arange(len(x)) == 2, np.nan, 0.5)[:, None])
    assert answers(file, str(tmp_path / "x.npy")) == 2
    assert "x.npy[2]: the values are too large for the network" in capsys.readouterr().err


def test_labels_cannot_steer_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_model(tmp_path / "m", model(["\x1b[31m", "a\nb"]))
    np.save(tmp_path / "x.npy", X)
    for form in ("text", "csv", "jsonl"):
        assert answers(tmp_path / "m", str(tmp_path / "x.npy"), "--format", form, "--top", "2") == 0
        out = capsys.readouterr().out
        assert "\x1b" not in out
        assert len(out.splitlines()) == 12 + (form == "csv")


def test_each_chunks_answers_are_passed_on_at_once(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    passed_on: list[int] = []

    class Out(io.StringIO):
        def flush(self) -> None:
            passed_on.append(len(self.getvalue().splitlines()))

    monkeypatch.setattr(arrays, "MAX_SAMPLES", 5)
    monkeypatch.setattr(sys, "stdout", Out())
    assert answers(file, str(tmp_path / "x.npy")) == 0
    assert passed_on[:3] == [5, 10, 12]


def test_answers_come_while_the_input_is_open_and_a_reader_may_leave(file: Path) -> None:
    command = ["spacenet", "predict", str(file), "-"]
    with start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(b"1,2,3,4,5,6,7,8\n" * 1024)
        process.stdin.flush()
        assert process.stdout.readline().startswith(b"0 ")  # though the input is still open
        process.stdout.close()
        process.stdin.write(b"1,2,3,4,5,6,7,8\n" * 1024)
        process.stdin.close()
        err = process.stderr.read()
        assert process.wait() == 141
    assert err == b""


def test_unknown_inputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_model(tmp_path / "m.safetensors", density_model("inputs"))
    known, other = blobs([0, "cat"], per_class=20)[0], np.full((1, 8), 1e15, np.float32)
    np.save(tmp_path / "x.npy", np.concatenate([known, other]))
    file = tmp_path / "m.safetensors"
    arguments = [str(tmp_path / "x.npy"), "--unknown", "0.05", "--top", "2", "--format"]
    assert answers(file, *arguments, "text") == 0
    lines = capsys.readouterr().out.splitlines()
    assert sum("unknown" in line for line in lines) < 20
    assert lines[-1].split() == ["40", "unknown", "typicality", "0.0000"]
    assert answers(file, *arguments, "csv") == 0
    rows = [*csv.DictReader(io.StringIO(capsys.readouterr().out))]
    assert [*rows[0]] == ["input", "row", "label", "probability", "label_2", "probability_2", "typicality"]
    assert (rows[-1]["label"], rows[-1]["probability_2"], rows[-1]["typicality"]) == ("unknown", "", "0")
    assert answers(file, *arguments, "jsonl") == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert found[-1] | {"input": ""} == {
        "input": "",
        "row": 40,
        "unknown": True,
        "typicality": 0.0,
        "label": "unknown",
        "probability": None,
    }
    sure = next(each for each in found if not each["unknown"])
    assert len(sure["top"]) == 2
    assert [each["unknown"] for each in found] == [row["label"] == "unknown" for row in rows]


def test_sets_of_classes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = density_model("inputs")
    save_model(tmp_path / "m.safetensors", made)
    file, x = tmp_path / "m.safetensors", np.concatenate([blobs([0, "cat"], per_class=20)[0], blobs(["x"])[0][:1]])
    np.save(tmp_path / "x.npy", x)
    expected = [[made.classes[number] for number in np.flatnonzero(own)] for own in made.predict_set(x, 0.8)]
    assert expected[-1] == []
    assert [0] in expected
    arguments = [str(tmp_path / "x.npy"), "--set", "0.8", "--format"]
    assert answers(file, *arguments, "jsonl") == 0
    assert [json.loads(line)["set"] for line in capsys.readouterr().out.splitlines()] == expected
    assert answers(file, *arguments, "csv") == 0
    rows = [*csv.DictReader(io.StringIO(capsys.readouterr().out))]
    assert [json.loads(row["set"]) for row in rows] == [[str(label) for label in own] for own in expected]
    assert answers(file, *arguments, "text", "--unknown", "0.2") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].endswith("set {}")
    assert any(line.endswith("set {cat}") for line in lines)
    assert answers(file, *arguments, "text", "--set", "1") == 2
    assert "must be between 0 and 1" in capsys.readouterr().err


def test_a_method_that_cannot_tell_unknown_inputs(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert answers(file, str(tmp_path / "x.npy"), "--unknown", "0.05") == 2
    assert "choose spacenet-density" in capsys.readouterr().err
