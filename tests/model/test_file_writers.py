"""Several writers and readers of one model file, and models that must not be written."""

import os
from pathlib import Path

import pytest

from spacenet.errors import ModelFileError
from spacenet.model.file import load_model, save_model
from tests.model.support import blobs, model


def test_a_file_that_another_process_changed_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "m"
    save_model(path, model([0, 1]))
    mine, theirs = load_model(path), load_model(path)
    theirs.learn(*blobs([2, 3]))
    save_model(path, theirs)
    mine.learn(*blobs([4, 5]))
    with pytest.raises(ModelFileError, match="changed by another process since this model was loaded"):
        save_model(path, mine)
    assert load_model(path).classes == [0, 1, 2, 3]
    save_model(tmp_path / "other", mine)  # another name is no problem, and neither is saving twice
    theirs.learn(*blobs([6, 7]))
    save_model(path, theirs)
    assert load_model(path).classes == [0, 1, 2, 3, 6, 7]


def test_a_model_that_would_be_refused_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "m"
    save_model(path, model([0, 1]))
    before = path.read_bytes()
    broken = load_model(path)
    next(iter(broken.method.ledger.connections.values())).value[0] = float("inf")
    with pytest.raises(ModelFileError, match="cannot be saved: .*a weight that is not a number"):
        save_model(path, broken)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_it_can_be_read_while_it_is_replaced(tmp_path: Path) -> None:
    small, large = tmp_path / "small", tmp_path / "large"
    save_model(small, model([0, 1]))
    save_model(large, model([0, 1], [2, 3], [4, 5]))
    contents, path = [small.read_bytes(), large.read_bytes()], tmp_path / "m"
    path.write_bytes(contents[0])
    child = os.fork()
    if child == 0:
        try:
            for number in range(100_000):
                if (tmp_path / "stop").exists():
                    break
                (tmp_path / "next").write_bytes(contents[number % 2])
                (tmp_path / "next").replace(path)
        finally:
            os._exit(0)
    try:
        assert {len(load_model(path).tasks) for _ in range(60)} <= {1, 3}
    finally:
        (tmp_path / "stop").touch()
        os.waitpid(child, 0)
