import json
from pathlib import Path

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pytest

import spacenet
from spacenet.cli.main import main
from spacenet.model.file import save_model
from spacenet.model.model import Model
from tests.model.support import blobs, density_model, model

X, Y = blobs([0, 1, 2, 3], per_class=10)


@pytest.fixture(scope="module")
def learned() -> Model:
    return model([0, 1], [2, 3])


@pytest.fixture
def file(tmp_path: Path, learned: Model) -> Path:
    save_model(tmp_path / "m.safetensors", learned)
    np.savez(tmp_path / "data.npz", x=X, y=Y)
    return tmp_path / "m.safetensors"


def test_tables(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(file), str(file.with_name("data.npz"))]) == 0
    out = capsys.readouterr().out
    for words in ("Accuracy on each task", "Old against new", "Precision and recall", "Calibration", "of 40 samples"):
        assert words in out


def test_json_and_a_page(file: Path, learned: Model, capsys: pytest.CaptureFixture[str]) -> None:
    page = file.with_name("page.html")
    assert main(["evaluate", str(file), str(file.with_name("data.npz")), "--json", "--out", str(page)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["accuracy"] == pytest.approx(100 * np.mean(np.array(learned.predict(X)) == Y))
    assert "<h1>m.safetensors on data.npz</h1>" in page.read_text(encoding="utf-8")


def test_a_table_with_a_column_of_labels(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [",".join([*map(str, x), f"{y}"]) for x, y in zip(X, Y, strict=True)]
    table = file.with_name("data.csv")
    table.write_text("\n".join([",".join([*"abcdefgh", "kind"]), *rows]))
    assert main(["evaluate", str(file), str(table), str(table), "--label", "kind", "--json", "--quiet"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["samples"], found["unknown"]) == (80, {})
    assert main(["evaluate", str(file), str(table)]) == 2
    assert "label" in capsys.readouterr().err


def test_unknown_labels_are_named(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(file.with_name("more.npz"), x=X, y=Y + 2)
    assert main(["evaluate", str(file), str(file.with_name("more.npz"))]) == 0
    assert "20 samples with unknown labels left out: 4 (10), 5 (10)." in capsys.readouterr().out


def test_wrong_rows_of_a_table_have_its_columns_names(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [f"length {number}" for number in range(X.shape[1])]
    table = pd.DataFrame(X, columns=names).assign(kind=(Y + 1) % 4)  # all of them wrong
    table.to_csv(file.with_name("table.csv"), index=False)
    assert main(["evaluate", str(file), str(file.with_name("table.csv")), "--label", "kind"]) == 0
    assert "length 0" in capsys.readouterr().out
    shown = spacenet.evaluate(file, table, label="kind").mistakes
    assert shown.columns == tuple(names)
    assert spacenet.evaluate(file, (X, (Y + 1) % 4)).mistakes.columns == ()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["{model}"], "give labeled data"),
        (["{model}", "nowhere.npz"], "nowhere.npz"),
        (["{model}", "{data}", "--out", "{data}"], "it would be lost"),
        (["{model}", "{data}", "--out", "nowhere/page.html"], "not a folder that can be written to"),
    ],
)
def test_bad_input_is_explained(
    file: Path, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    data = file.with_name("data.npz")
    before = data.read_bytes()
    assert main(["evaluate", *(text.format(model=file, data=data) for text in arguments)]) == 2
    assert words in capsys.readouterr().err
    assert data.read_bytes() == before


def test_how_well_unknown_samples_are_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_model(tmp_path / "m.safetensors", density_model("inputs", [0, 1], [2, 3]))
    x, y = blobs([0, 1, 2, 3, 8], per_class=10)
    np.savez(tmp_path / "data.npz", x=x, y=y)
    command = ["evaluate", str(tmp_path / "m.safetensors"), str(tmp_path / "data.npz")]
    assert main([*command, "--unknown", "0.1"]) == 0
    out = capsys.readouterr().out
    for words in ("false alarms", "wanted 10 %", "unknown found", "AUROC"):
        assert words in out
    assert main([*command, "--unknown", "0.1", "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)["detection"]) == {"rate", "false_alarms", "found", "auroc"}
    assert main([*command, "--unknown", "5"]) == 2
    assert "--unknown: the fraction" in capsys.readouterr().err
    assert main(command) == 0
    assert "AUROC" not in capsys.readouterr().out
