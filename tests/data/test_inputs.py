"""What a model is asked about, of whatever kind: what comes of it, and in which order."""

import os
import threading
from pathlib import Path

import numpy as np
import pytest

from spacenet.data import arrays
from spacenet.data.checks import looks_scaled
from spacenet.data.inputs import read_inputs
from spacenet.data.parts import Target
from spacenet.errors import DataError
from tests.data.input_files import FLAT, GREY, LINES, NOTHING, RNG, X, image_file, npy, npy_bytes, read, values


def test_standard_input_is_npy_or_csv() -> None:
    assert np.array_equal(values(read("-", stdin=npy_bytes(X))), X)
    assert np.array_equal(values(read("-", stdin=LINES.encode())), X)


def test_a_pipe_with_a_name(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_bytes(npy_bytes(X)))
    writer.start()
    assert np.array_equal(values(read(tmp_path / "pipe")), X)
    writer.join()


def test_a_folder_and_other_things_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("in/b.png", "in/a.PNG", "in/deep/c.png", "in/.hidden.png", "in/.git/d.png", "z.png"):
        image_file(tmp_path / name)
    (tmp_path / "in" / "notes.txt").write_text("not an image")
    npy(tmp_path / "x.npy", np.zeros((2, *GREY), np.uint8))
    monkeypatch.setattr(arrays, "MAX_SAMPLES", 3)
    chunks = read("in", "z.png", "x.npy", "z.png", shape=GREY)
    assert [(list(chunk.inputs), list(chunk.rows)) for chunk in chunks] == [
        (["in/a.PNG", "in/b.png", "in/deep/c.png"], [None] * 3),
        (["z.png"], [None]),
        (["x.npy", "x.npy"], [0, 1]),
        (["z.png"], [None]),
    ]


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (["missing.npy"], "missing.npy: cannot be read"),
        (["a.txt"], "a.txt: unknown kind of input; use .npz"),
        (["-", "-"], "can be given once only"),
        (["x" * 5000], "cannot be read"),
        (["folder"], "which are not images"),
    ],
)
def test_inputs_are_checked_before_any_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: list[str], reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").touch()
    (tmp_path / "folder").mkdir()
    with pytest.raises(DataError, match=reason):
        read_inputs(names, Target(FLAT), NOTHING)


def test_values_that_were_scaled_already() -> None:
    x = RNG.random((3, *GREY))
    assert looks_scaled(x, 1 / 255)
    assert not looks_scaled(x * 255, 1 / 255)
    assert not looks_scaled(np.round(x), 1 / 255)
    assert not looks_scaled(np.zeros((3, *GREY), np.uint8), 1 / 255)
    assert not looks_scaled(RNG.random((3, *FLAT)), 1.0)
