import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from spacenet.cli.main import main
from spacenet.config.model import PreprocessingConfig
from spacenet.experiments.callbacks import LineLogger
from spacenet.model.file import load_model, save_model, to_bytes
from spacenet.model.model import Model
from spacenet.training.loop import Epoch
from tests.model.support import blobs, model, new_model
from tests.warm import start

X, Y = blobs([1, 2, 6])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    save_model(tmp_path / "m.safetensors", model([0, 1]))
    return tmp_path / "m.safetensors"


def npz(folder: Path, **arrays: object) -> Path:
    np.savez(folder / "new.npz", **(arrays or {"x_train": X, "y_train": Y}))  # type: ignore[arg-type]
    return folder / "new.npz"


def learn(file: Path, new: Path, *more: str) -> int:
    return main(["learn", str(file), str(new), *more])


def test_in_a_fresh_process_it_ends_in_the_same_bytes(tmp_path: Path) -> None:
    learned: Model = model([0, 1])
    save_model(tmp_path / "m", learned)
    x, y = blobs([2, 3])
    arguments = ["learn", str(tmp_path / "m"), str(npz(tmp_path, x=x, y=y))]
    out, _ = start(["spacenet", *arguments], stdout=subprocess.PIPE, text=True).communicate()
    assert "Task 2 learned" in out
    learned.learn(x, y)
    assert (tmp_path / "m").read_bytes() == to_bytes(learned)
    x, y = blobs([4, 1])  # and it goes on from there
    assert learn(tmp_path / "m", npz(tmp_path, x=x, y=y), "--quiet") == 0
    learned.learn(x, y)
    assert (tmp_path / "m").read_bytes() == to_bytes(learned)


def test_the_summary(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new = npz(tmp_path, x_train=X, y_train=Y, x_test=X, y_test=Y)
    assert learn(file, new) == 0
    out, err = capsys.readouterr()
    lines = [" ".join(line.split()) for line in out.splitlines()]
    learned = load_model(file)
    for line in (
        "Task 2 learned",
        "new classes 2, 6",
        "seen before 1",
        f"capacity room for {learned.space_left()} more tasks like the last one",
        f"written to {file}",
    ):
        assert any(found.startswith(line[:60]) for found in lines), line
    right = [learned.classes[n] for n in learned.predict_proba(X).argmax(1)]
    assert f"accuracy {100 * np.mean(np.array(right) == Y):.2f} % on the test samples" in lines
    assert "task 2 epoch 8/8 loss" in " ".join(err.split())
    assert "\x1b" not in out + err


def test_json_is_all_there_is(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sum(map(len, load_model(file).method.ledger.connections.values()))
    assert learn(file, npz(tmp_path), "--json", "--quiet", "--out", str(tmp_path / "new")) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert err == ""
    after = sum(map(len, load_model(tmp_path / "new").method.ledger.connections.values()))
    seconds = found.pop("seconds")
    assert seconds > 0
    assert found == {
        "task": 2,
        "tasks_added": 1,
        "new_classes": [2, 6],
        "seen_before": [1],
        "connections": after,
        "connections_added": after - before,
        "tasks_left": load_model(tmp_path / "new").space_left(),
        "accuracy": None,
        "written": str(tmp_path / "new"),
    }


def test_out_leaves_the_model_alone(file: Path, tmp_path: Path) -> None:
    before = file.read_bytes()
    assert learn(file, npz(tmp_path), "--quiet", "--out", str(tmp_path / "new")) == 0
    assert file.read_bytes() == before
    assert load_model(tmp_path / "new").tasks == [(0, 1), (2, 6)]


def test_a_link_stays_a_link(file: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(file)
    assert learn(tmp_path / "link", npz(tmp_path), "--quiet") == 0
    assert (tmp_path / "link").is_symlink()
    assert len(load_model(file).tasks) == 2


def test_epochs_hold_for_this_task_only(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert learn(file, npz(tmp_path), "--epochs", "2", "--out", str(tmp_path / "short")) == 0
    assert "epoch 2/2" in capsys.readouterr().err
    assert learn(file, npz(tmp_path), "--quiet", "--out", str(tmp_path / "long")) == 0
    assert load_model(tmp_path / "short").config == load_model(file).config
    assert (tmp_path / "short").read_bytes() != (tmp_path / "long").read_bytes()


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"x_train": X}, "has no y_train; it holds x_train: save them with numpy.savez_compressed(path, x_train=…, y"),
        ({"x_train": X, "y_train": Y[:-1]}, "x_train has 60 samples, and there are 59 labels"),
        ({"x_train": X[:, :7], "y_train": Y}, "samples have the shape (7,); the model takes (8,)"),
        ({"x_train": X, "y_train": Y, "x_test": X}, "one of x_test and y_test"),
        (
            {"x_train": X, "y_train": Y, "x_test": X[:2], "y_test": Y[:1]},
            "x_test has 2 samples, and there are 1",
        ),
        ({"x": X * np.nan, "y": Y}, "x has NaN or infinite values, the first in row 0"),
        ({"x": X.astype(object), "y": Y}, "x is an object array"),
        ({"x": X, "y": Y.astype(str)}, "the label '1' is of the type str, and the model knows int labels"),
    ],
)
def test_data_that_does_not_do(
    file: Path, tmp_path: Path, arrays: dict[str, object], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = file.read_bytes()
    assert learn(file, npz(tmp_path, **arrays)) == 2
    err = capsys.readouterr().err
    assert words in err
    assert "Traceback" not in err
    assert file.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.safetensors", "new.npz"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--epochs", "0"], "--epochs: 0 is out of range (1 or more)"),
        (["--out", "."], "is a folder"),
        (["--out", "no/where"], "out: no is not a folder that can be written to"),
        (["--test", "missing.npz"], "missing.npz: cannot be read (No such file or directory)"),
    ],
)
def test_options_that_do_not_do(
    file: Path,
    tmp_path: Path,
    arguments: list[str],
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    before = file.read_bytes()
    assert learn(file, npz(tmp_path), *arguments) == 2
    assert words in capsys.readouterr().err
    assert file.read_bytes() == before


def test_fractions_for_a_model_of_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = new_model(preprocessing=PreprocessingConfig(1 / 255))
    made.learn(np.arange(160, dtype=np.uint8).reshape(20, 8), np.arange(20) % 2)
    save_model(tmp_path / "m", made)
    assert learn(tmp_path / "m", npz(tmp_path, x=np.random.default_rng(0).random((20, 8)), y=np.arange(20) % 2)) == 2
    assert "multiply them by 255" in capsys.readouterr().err


def test_a_full_model_stays_as_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_model(tmp_path / "m", model([0, 1], selected=(30,), reserved=(30,)))
    before = (tmp_path / "m").read_bytes()
    assert learn(tmp_path / "m", npz(tmp_path)) == 1
    err = capsys.readouterr().err
    assert "is full" in err
    assert "--expand auto makes room" in err
    assert (tmp_path / "m").read_bytes() == before


def test_a_full_model_grows_if_it_may(tmp_path: Path) -> None:
    save_model(tmp_path / "m", model([0, 1], selected=(30,), reserved=(30,)))
    config = load_model(tmp_path / "m").config
    assert learn(tmp_path / "m", npz(tmp_path), "--quiet", "--expand", "auto") == 0
    grown = load_model(tmp_path / "m")
    assert grown.method.ledger.size("hidden1") > 30
    assert grown.config == config, "it is for this task only"


def test_a_disk_that_fails_leaves_nothing_behind(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = file.read_bytes()
    new = npz(tmp_path)

    def replace(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", replace)
    assert learn(file, new, "--quiet") == 2
    assert "cannot be written (No space left on device)" in capsys.readouterr().err
    assert file.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.safetensors", "new.npz"]


def test_interrupted_the_model_is_as_it_was(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = file.read_bytes()

    def interrupt(self: LineLogger, epoch: Epoch) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(LineLogger, "on_epoch_end", interrupt)
    assert learn(file, npz(tmp_path)) == 130
    assert "interrupted" in capsys.readouterr().err
    assert file.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.safetensors", "new.npz"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_two_that_learn_at_the_same_time_lose_nothing(file: Path, tmp_path: Path) -> None:
    children = []
    for number in (2, 4):
        x, y = blobs([number, number + 1])
        np.savez(tmp_path / f"{number}.npz", x=x, y=y)
        child = os.fork()
        if child == 0:
            code = 70
            try:
                code = learn(file, tmp_path / f"{number}.npz", "--quiet", "--json")
            finally:
                os._exit(code)
        children.append(child)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0]
    learned = load_model(file)
    assert sorted(map(str, learned.classes)) == list("012345")
    assert len(learned.tasks) == 3


def test_an_output_is_never_an_input(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new, table = npz(tmp_path), tmp_path / "in.csv"
    table.write_text("1,2,3,4,5,6,7,8\n")
    (tmp_path / "link.csv").symlink_to(table)
    before = {path: path.read_bytes() for path in (file, new, table)}
    for arguments in (
        ["learn", str(file), str(new), "--out", str(new)],
        ["predict", str(file), str(table), "--out", str(file)],
        ["predict", str(file), str(table), "--out", str(table)],
        ["predict", str(file), str(table), "--out", str(tmp_path / "link.csv")],
        ["predict", str(file), str(tmp_path / "link.csv"), "--out", str(table)],
    ):
        assert main(arguments) == 2
        assert "is what is read" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in before} == before


def test_permissions_stay(file: Path, tmp_path: Path) -> None:
    file.chmod(0o600)
    assert learn(file, npz(tmp_path), "--quiet") == 0
    assert file.stat().st_mode & 0o777 == 0o600
