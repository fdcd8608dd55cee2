import json
from pathlib import Path

import pytest

from spacenet.cli.main import main
from spacenet.model.file import load_model, save_model
from spacenet.model.journal import undo_path
from tests.cli.test_learn import npz
from tests.model.support import model


@pytest.fixture
def file(tmp_path: Path) -> Path:
    save_model(tmp_path / "m.safetensors", model([0, 1], ["cat", "dog"]))
    return tmp_path / "m.safetensors"


def edit(file: Path, *arguments: str) -> int:
    return main(["edit", str(file), *arguments])


def test_the_table_of_what_changed(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "800")
    long = 100 * "o"  # so that the file's size differs in what is shown of it
    assert edit(file, "rename", "cat", f"[red]\x1b{long}") == 0
    out, err = capsys.readouterr()
    lines = [" ".join(line.split()) for line in out.splitlines()]
    new = f"[red]\\x1b{long}"
    for line in (f"Class cat renamed to {new}", f"classes 0, 1, {new}, dog", f"version before {file}.undo"):
        assert line in lines
    assert any(line.startswith("file ") and "(before: " in line for line in lines)
    assert err == ""
    assert load_model(file).tasks == [(0, 1), (f"[red]\x1b{long}", "dog")]


def test_numbers_stay_numbers_and_texts_texts(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert edit(file, "rename", "1", "7") == 0
    assert edit(file, "rename", "dog", "8") == 0
    assert load_model(file).tasks == [(0, 7), ("cat", "8")]
    assert edit(file, "merge", "0", "7", "--into", "3", "--json") == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert found.pop("bytes") < found.pop("bytes_before") + 100
    assert found == {
        "change": "Classes 0, 7 merged into 3",
        "classes": [3, "cat", "8"],
        "tasks": 2,
        "connections": found["connections_before"],
        "connections_before": found["connections_before"],
        "tasks_left": load_model(file).space_left(),
        "undo": f"{file}.undo",
        "written": str(file),
    }
    assert edit(file, "merge", "3", "--into", "cat") == 0
    assert load_model(file).tasks == [("cat", "cat"), ("cat", "8")]


def test_undo_of_an_edit_and_of_a_task(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, new = file.read_bytes(), npz(tmp_path)
    changes = [["edit", str(file), "rename", "0", "5"], ["learn", str(file), str(new), "--quiet"]]
    for change in changes:
        assert main(change) == 0
        assert file.read_bytes() != before
        assert edit(file, "undo") == 0
        assert "Last change undone" in capsys.readouterr().out
        assert file.read_bytes() == before
        assert not undo_path(file).exists()
    assert edit(file, "undo") == 2
    assert "nothing to undo: there is no version before" in capsys.readouterr().err


def test_a_removed_class_is_in_no_file(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert edit(file, "rename", "cat", "secret") == 0
    assert b"secret" in file.read_bytes()
    before = file.read_bytes()
    capsys.readouterr()
    assert edit(file, "forget", "secret", "1", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["change"], found["classes"], found["undo"]) == ("Classes secret, 1 removed", [0, "dog"], None)
    assert found["connections"] < found["connections_before"]
    assert [each for each in file.parent.iterdir() if b"secret" in each.read_bytes()] == []
    assert edit(file, "undo") == 2
    file.write_bytes(before)
    assert edit(file, "forget", "secret", "--keep-undo") == 0
    assert "version before" in capsys.readouterr().out
    assert edit(file, "undo") == 0
    assert file.read_bytes() == before


def test_a_task_learned_into_another_file_keeps_no_version(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    assert main(["learn", str(file), str(npz(tmp_path)), "--quiet", "--out", str(other)]) == 0
    assert not undo_path(other).exists()
    assert not undo_path(file).exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rename", "cta", "x"], "unknown class 'cta', did you mean 'cat'?"),
        (["rename", "cat", "dog"], "To make one class of both: spacenet edit MODEL merge cat --into dog"),
        (["rename", "cat"], "rename takes other labels than these (1 given): spacenet edit MODEL rename OLD NEW"),
        (["merge", "cat", "dog"], "spacenet edit MODEL merge A B --into C"),
        (["merge", "cat", "--into", "lion"], "two classes are needed"),
        (["merge", "cat", "dgo", "--into", "pet"], "did you mean 'dog'?"),
        (["rename", "cat", "lion", "--into", "x"], "--into: goes with merge, not with rename"),
        (["forget"], "forget takes other labels than these (0 given): spacenet edit MODEL forget LABEL"),
        (["forget", "dgo"], "unknown class 'dgo', did you mean 'dog'?"),
        (["forget", "0", "1", "cat", "dog"], "is the only class of this model"),
        (["undo", "--keep-undo"], "--keep-undo: goes with forget, not with undo"),
        (["undo", "cat"], "spacenet edit MODEL undo"),
        (["renam", "cat", "lion"], "did you mean 'rename'?"),
        (["undo"], "nothing to undo"),
    ],
)
def test_mistakes_change_nothing(
    file: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = file.read_bytes()
    assert edit(file, *arguments) == 2
    assert message in capsys.readouterr().err
    assert file.read_bytes() == before
    assert list(file.parent.iterdir()) == [file]


def test_a_file_that_is_no_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m").write_bytes(b"no")
    for name in ("m", "none", "."):
        assert edit(tmp_path / name, "undo") == 2
        assert capsys.readouterr().err.startswith(f"spacenet: {tmp_path}")
