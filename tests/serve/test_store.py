"""The model that is served, and its file."""

import errno
import os
import stat
import time
from pathlib import Path

import pytest

from spacenet.errors import ModelFileError
from spacenet.model.file import load_model, save_model
from spacenet.model.journal import undo
from spacenet.serve import store as module
from spacenet.serve.store import Store
from tests.model.support import model

NAME = "model.safetensors"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    save_model(tmp_path / NAME, model([0, 1]))
    return tmp_path / NAME


def test_a_file_that_another_process_has_changed_is_served_anew(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, first = Store(path), load_model(path)
    save_model(path, model([5, 6]))
    assert store.current.classes == first.classes, "it was looked at just now"
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.0)
    for _ in range(500):
        if store.current.classes == [5, 6]:
            break
        time.sleep(0.01)
    assert store.current.classes == [5, 6]


def test_a_file_that_cannot_be_used_is_not_served(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store, content = Store(path), path.read_bytes()
    for damaged in (content[:-1], b"no model"):
        path.write_bytes(damaged)
        caplog.clear()
        for _ in range(3):
            store.refresh(wait=True)
        assert caplog.text.count("has changed and is not served") == 1
        assert store.current.classes == [0, 1]
    path.unlink()
    store.refresh(wait=True)
    assert store.current.classes == [0, 1]
    save_model(path, model([5, 6]))
    store.refresh(wait=True)
    assert store.current.classes == [5, 6]


def test_a_model_that_was_changed_by_others_is_not_replaced(path: Path) -> None:
    save_model(path.with_name("new"), model())
    store = Store(path)
    before = store.signature()
    save_model(path, model([5, 6]))
    with pytest.raises(ModelFileError, match="changed by another process"):
        store.adopt(path.with_name("new"), before)
    assert load_model(path).classes == [5, 6]
    assert store.current.model.classes == [5, 6]  # what is on the disk is what is served


def test_what_is_adopted_can_be_undone(path: Path) -> None:
    save_model(path.with_name("new"), model())
    store, before = Store(path), path.read_bytes()
    store.adopt(path.with_name("new"), store.signature())
    assert path.read_bytes() == path.with_name("new").read_bytes()
    undo(path)
    assert path.read_bytes() == before
    store.refresh(wait=True)
    assert store.current.classes == [0, 1]


def test_a_folder_that_cannot_be_flushed_does_not_part_the_service_from_its_file(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new model is in its place by then, so it must be the one that answers."""
    save_model(path.with_name("new"), model())
    store, plain = Store(path), os.fsync

    def fsync(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        plain(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    store.adopt(path.with_name("new"), store.signature())
    assert store.current.model.tasks == load_model(path).tasks == [(0, 1), (2, 3)]
