"""The version before, beside a model file."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from spacenet.errors import FileError, ModelFileError
from spacenet.model import journal
from spacenet.model.file import load_model, save_model
from spacenet.model.journal import replace_model, undo, undo_path
from spacenet.model.model import Model
from tests.model.support import model


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("made") / "m"
    save_model(path, model())
    return path.read_bytes()


@pytest.fixture
def file(tmp_path: Path, content: bytes) -> Path:
    (tmp_path / "m").write_bytes(content)
    return tmp_path / "m"


def renamed(path: Path, new: str = "one") -> Model:
    edited = load_model(path)
    edited.rename(edited.classes[1], new)
    return edited


def test_after_undo_the_file_is_the_one_before_byte_for_byte(file: Path, content: bytes) -> None:
    replace_model(file, renamed(file))
    assert file.read_bytes() != content
    assert undo(file).classes == load_model(file).classes == [0, 1, 2, 3]
    assert file.read_bytes() == content
    assert list(file.parent.iterdir()) == [file]
    with pytest.raises(ModelFileError, match="nothing to undo: there is no version before"):
        undo(file)


def test_one_version_is_kept(file: Path, content: bytes) -> None:
    replace_model(file, renamed(file))
    once = file.read_bytes()
    replace_model(file, renamed(file, "uno"))
    assert undo_path(file).stat().st_size == len(once) + journal.LINE
    undo(file)
    assert file.read_bytes() == once
    with pytest.raises(ModelFileError, match="nothing to undo"):
        undo(file)
    assert file.read_bytes() == once


def test_a_version_before_another_file_is_not_used(file: Path, content: bytes) -> None:
    replace_model(file, renamed(file))
    save_model(file, renamed(file, "two"))  # which keeps nothing
    now = file.read_bytes()
    with pytest.raises(ModelFileError, match="the version before another file"):
        undo(file)
    assert file.read_bytes() == now


def test_nothing_is_kept_if_it_is_not_wanted(file: Path) -> None:
    replace_model(file, renamed(file))
    replace_model(file, renamed(file, "two"), keep_undo=False)
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.parametrize("damage", [lambda held: held[:-9], lambda held: held[:100], lambda held: held + b"0"])
def test_a_damaged_version_is_not_used(file: Path, damage: Callable[[bytes], bytes]) -> None:
    replace_model(file, renamed(file))
    now, kept = file.read_bytes(), undo_path(file)
    kept.write_bytes(damage(kept.read_bytes()))
    with pytest.raises(ModelFileError, match=r"m\.undo"):
        undo(file)
    assert file.read_bytes() == now


@pytest.mark.skipif(os.name == "nt", reason="needs permissions as Unix has them")
def test_it_is_as_private_as_the_model_and_links_are_followed(file: Path, content: bytes) -> None:
    link = file.parent / "link"
    link.symlink_to(file)
    for mode in (0o600, 0o640):
        file.chmod(mode)
        replace_model(link, renamed(file, f"mode {mode}"))
        assert stat.S_IMODE(undo_path(link).stat().st_mode) == mode
    assert undo_path(link) == file.with_name("m.undo")
    undo(link)
    assert link.is_symlink()
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def _fail(*arguments: object, **options: object) -> None:
    raise FileError("the power is gone")


@pytest.mark.parametrize("step", ["atomic_write", "save_model"])
def test_a_change_that_is_interrupted_leaves_the_old_file(
    file: Path, content: bytes, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    edited = renamed(file)
    with monkeypatch.context() as patch:
        patch.setattr(journal, step, _fail)
        with pytest.raises(FileError, match="power"):
            replace_model(file, edited)
    assert file.read_bytes() == content
    with pytest.raises(ModelFileError, match="nothing to undo"):
        undo(file)
    replace_model(file, edited)
    undo(file)
    assert file.read_bytes() == content


def test_an_undo_that_is_interrupted_can_be_repeated(
    file: Path, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace_model(file, renamed(file))
    with monkeypatch.context() as patch:
        patch.setattr(journal, "save_bytes", _fail)
        with pytest.raises(FileError, match="power"):
            undo(file)
    undo(file)
    assert file.read_bytes() == content


def test_an_undo_is_done_when_the_file_is_in_its_place(file: Path, content: bytes) -> None:
    replace_model(file, renamed(file))
    held = undo_path(file).read_bytes()
    undo(file)
    undo_path(file).write_bytes(held)  # as if it could not be removed
    with pytest.raises(ModelFileError, match="nothing to undo"):
        undo(file)
    assert file.read_bytes() == content
    replace_model(file, renamed(file))
    undo(file)
    assert file.read_bytes() == content
