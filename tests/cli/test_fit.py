import json
from pathlib import Path

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pytest
from PIL import Image

import spacenet
from spacenet.cli.main import main
from spacenet.model.file import load_model, to_bytes
from tests.model.support import blobs

X, Y = blobs([1, 2, 3])
NAMES = np.array(["none", "ash", "oak", "elm"])
SHORT = ["--epochs", "2", "--quiet"]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    pd.DataFrame(X).assign(kind=NAMES[Y]).to_csv(tmp_path / "trees.csv", index=False)
    return tmp_path / "trees.csv"


def fit(data: Path, out: Path, *more: str) -> int:
    return main(["fit", str(data), "--out", str(out), *SHORT, *more])


def test_it_is_the_model_of_the_classifier(table: Path, tmp_path: Path) -> None:
    assert fit(table, tmp_path / "m", "--label", "kind") == 0
    wanted = spacenet.SpaceNetClassifier(epochs=2).fit(X.astype(np.float32), NAMES[Y]).model_
    assert (tmp_path / "m").read_bytes() == to_bytes(wanted)


def test_task_by_task_it_is_partial_fit(table: Path, tmp_path: Path) -> None:
    assert fit(table, tmp_path / "m", "--label", "kind", "--tasks", "oak/ash,elm", "--hidden", "60", "40") == 0
    wanted = spacenet.SpaceNetClassifier(epochs=2, hidden=(60, 40))
    for task in (["oak"], ["ash", "elm"]):
        rows = np.isin(NAMES[Y], task)
        wanted.partial_fit(X[rows].astype(np.float32), NAMES[Y][rows])
    assert (tmp_path / "m").read_bytes() == to_bytes(wanted.model_)
    assert fit(table, tmp_path / "n", "--label", "kind", "--classes-per-task", "2") == 0
    assert load_model(tmp_path / "n").tasks == [("ash", "elm"), ("oak",)]
    assert fit(table, tmp_path / "o", "--label", "kind", "--first-classes", "1") == 0
    assert load_model(tmp_path / "o").tasks == [("ash",), ("elm", "oak")]


def test_the_summary_and_what_comes_after(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "m"
    assert main(["fit", str(table), "--out", str(model), "--label", "kind", "--test-fraction", "0.2"]) == 0
    out, err = capsys.readouterr()
    words = " ".join(out.split())
    assert "Task 1 learned" in words
    assert "new classes ash, elm, oak" in words
    assert "% on the test samples" in words
    assert "task 1: 48 samples of 3 classes" in err
    assert "epoch 1/" in err
    new = pd.DataFrame(X).assign(kind=np.array(["a", "b", "c", "d"])[Y])
    new.to_csv(tmp_path / "new.csv")
    assert main(["learn", str(model), str(tmp_path / "new.csv"), "--label", "kind", "--epochs", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["new_classes"] == ["b", "c", "d"]
    assert main(["predict", str(model), str(tmp_path / "new.csv"), "--label", "kind"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(X)


def test_a_folder_of_images(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, label in enumerate(("dark", "bright")):
        (tmp_path / "photos" / label).mkdir(parents=True)
        for image in range(6):
            Image.new("L", (6, 6), 200 * number + image).save(tmp_path / "photos" / label / f"{image}.png")
    assert (
        fit(tmp_path / "photos", tmp_path / "m", "--test", str(tmp_path / "photos"), "--image-size", "4", "--json") == 0
    )
    assert json.loads(capsys.readouterr().out)["new_classes"] == ["bright", "dark"]
    assert load_model(tmp_path / "m").input_shape == (4, 4)
    assert main(["predict", str(tmp_path / "m"), str(tmp_path / "photos"), "--resize"]) == 0


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ([], "--label: name the column of"),
        (["--label", "kind", "--method", "joint", "--classes-per-task", "1"], "joint can only continue with all old"),
        (["--label", "kind", "--method", "ewc", "--selected", "3"], "--selected"),
        (["--label", "kind", "--tasks", "oak/oak"], "--tasks: class oak is in more than one task"),
        (["--label", "kind", "--tasks", "oak/fir"], "--tasks: unknown class 'fir'"),
        (["--label", "kind", "--out", "there"], "--out: there is there already; choose another file, or remove it"),
        (["--label", "kind", "--epochs", "0"], "epochs: 0 is out of range (1 or more)"),
    ],
)
def test_what_does_not_do(
    table: Path, more: list[str], words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(table.parent)
    Path("there").write_text("something")
    assert fit(table, Path("m"), *more) == 2
    assert words in capsys.readouterr().err
    assert not Path("m").exists()
