import json
from pathlib import Path

import numpy as np
import pytest

from spacenet import SpaceNetClassifier
from spacenet.cli.main import main
from spacenet.model.file import save_model
from spacenet.model.inspection import inspect_model
from spacenet.model.model import Model
from spacenet.model.watching import Watch, save_watch, watch_path
from tests.model.support import blobs, density_model, model


@pytest.fixture
def learned(tmp_path: Path) -> tuple[Path, Model]:
    made = model([0, 1], ["[red]x", "\x1b[31m"])
    made.metrics = {"acc": 71.5, "bwt": -3.25, "ece": 1.25, "tasks_learned": 1, "stream": "split-x"}
    made.metrics["evaluated_on"] = "test set"
    save_model(tmp_path / "m.safetensors", made)
    return tmp_path / "m.safetensors", made


def test_it_says_what_there_is(
    learned: tuple[Path, Model], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["inspect", str(learned[0])]) == 0
    out = capsys.readouterr().out
    for words in (
        "spacenet, seed 0",
        "mlp, hidden layers of 30 30",
        "8 epochs, batches of 8, sgd, learning rate 0.1",
        f"room for {learned[1].space_left()} more tasks like the last one",
        "Layers",
        "hidden2",
        "connections",
        "units reserved",
        "bytes per connection",
        "if it were dense",
        "71.50",
        "after 1 task; now there are 2",
        "split-x, test set",
    ):
        assert words in out
    assert "…" not in out, "nothing is cut off in a usual terminal"
    rows = [line.split() for line in out.splitlines()]
    layers = learned[1].method.layer_usage()
    for layer in layers[:2]:
        # The table is too wide for 80 columns and goes on below.
        cells = [int(cell) for row in rows if row[:1] == [layer.name] for cell in row[1:]]
        assert (cells[0], cells[4], cells[6]) == (layer.units, layer.reserved, layer.connections)


def test_it_says_what_is_kept_of_classes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    save_model(tmp_path / "m", density_model("edges"))
    assert main(["inspect", str(tmp_path / "m")]) == 0
    out = capsys.readouterr().out
    assert "2 Gaussians × 3 directions on 128 edges of images: 1,034 values per class, 17.4 KiB in all" in out
    assert out.count(", and class statistics") == 2


def test_labels_are_text_and_nothing_else(learned: tuple[Path, Model], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(learned[0])]) == 0
    out = capsys.readouterr().out
    assert "[red]x" in out
    assert "\\x1b[31m" in out
    assert "\x1b" not in out


def test_many_classes_are_cut_short(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = model(list(range(30)), connections=(0.2,))
    save_model(tmp_path / "m", made)
    assert main(["inspect", str(tmp_path / "m")]) == 0
    assert "(30 in all)" in " ".join(capsys.readouterr().out.split())


def test_json(learned: tuple[Path, Model], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(learned[0]), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["sizes"]["file"] == learned[0].stat().st_size
    assert [task["number"] for task in found["tasks"]] == [1, 2]
    assert found["measured"] == {"acc": 71.5, "bwt": -3.25, "ece": 1.25}


def test_a_full_model_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    full = model([0, 1], selected=(30,), reserved=(30,))
    save_model(tmp_path / "full", full)
    assert main(["inspect", str(tmp_path / "full")]) == 0
    assert "no room for another task like the last one" in capsys.readouterr().out


def test_what_is_no_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(tmp_path / "missing")]) == 2
    (tmp_path / "text").write_text("not a model at all")
    assert main(["inspect", str(tmp_path / "text")]) == 2
    err = capsys.readouterr().err
    assert "no such file" in err
    assert "Traceback" not in err


def test_settings_that_follow_from_the_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    SpaceNetClassifier(hidden=(30, 30)).fit(*blobs([0, 1])).save(tmp_path / "m.safetensors")
    assert main(["inspect", str(tmp_path / "m.safetensors")]) == 0
    assert "epochs by the number of samples, batches of 32" in capsys.readouterr().out


def test_it_shows_what_was_counted_of_predictions(
    learned: tuple[Path, Model], capsys: pytest.CaptureFixture[str]
) -> None:
    watch = Watch(learned[1].classes)
    watch.update(learned[1].classes, np.full(4, 0.5))
    save_watch(learned[0], watch)
    assert main(["inspect", str(learned[0])]) == 0
    out = capsys.readouterr().out
    assert "How typical the samples are" in out
    assert "4 predictions, 0 of them unknown" in out
    assert main(["inspect", str(learned[0]), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["watch"]["samples"] == 4
    watch_path(learned[0]).write_text("{}")
    assert main(["inspect", str(learned[0])]) == 2
    assert "remove it to count anew" in capsys.readouterr().err


def test_a_card_is_markdown(learned: tuple[Path, Model], capsys: pytest.CaptureFixture[str]) -> None:
    path = learned[0]
    assert main(["inspect", str(path), "--card"]) == 0
    card = capsys.readouterr().out
    assert card.startswith("# m\n\n## Model\n")
    for words in (
        "Measured on split-x, test set",
        "Measured after 1 task; now there are 2",
        "ACC: 71.50",
        "Expected calibration error: 1.25 percentage points",
        "spacenet: ",
    ):
        assert words in card
    assert "It cannot tell that an input is like none of them." in card
    assert "\x1b" not in card
    assert "License" not in card
    assert main(["inspect", str(path), "--card", "--out", str(path.parent / "card.md")]) == 0
    assert (path.parent / "card.md").read_text() == card
    capsys.readouterr()
    assert main(["inspect", str(path), "--out", str(path.parent / "x")]) == 2
    assert main(["inspect", str(path), "--card", "--json"]) == 2
    assert main(["inspect", str(path), "--card", "--out", str(path)]) == 2
    assert "is what is read" in capsys.readouterr().err


def test_a_card_says_what_was_not_measured_and_each_task(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = density_model("edges")
    save_model(tmp_path / "m", made)
    assert main(["inspect", str(tmp_path / "m"), "--card"]) == 0
    card = capsys.readouterr().out
    assert "The file has no measurements" in card
    assert "The file does not hold how well probabilities are calibrated" in card
    assert "--unknown 0.05" in card
    assert "| 2 | cat, dog |\n" in card
    made.metrics = {"matrix": [[90.0, 0.0], [70.0, 73.0]]}
    save_model(tmp_path / "m", made)
    assert main(["inspect", str(tmp_path / "m"), "--card"]) == 0
    assert "| 2 | cat, dog | 73.00 |\n" in capsys.readouterr().out
    for matrix in ([[1.0]], "no", [[90.0, 0.0], ["a", 1.0]], [[1.0], [float("nan"), 1.0]], [1, 2]):
        made.metrics = {"matrix": matrix}
        assert inspect_model(made, 1).task_accuracies == []
