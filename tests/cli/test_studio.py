"""`spacenet studio` as a process of its own."""

import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import httpx
import pytest

from spacenet.cli import studio as command
from spacenet.cli.main import main
from spacenet.cli.serve import open_listener
from spacenet.errors import MissingExtraError
from spacenet.model.file import save_model
from tests.model.support import model


def test_it_serves_its_page_and_leaves_nothing(tmp_path: Path) -> None:
    (leftover := Path(tempfile.mkdtemp(prefix=command.FOLDER, dir=tmp_path))).joinpath("owner.json").write_text("{}")
    os.utime(leftover, (0, 0))
    program = [sys.executable, "-m", "spacenet.cli.main", "studio", "--no-browser"]
    env, pipe = {**os.environ, "TMPDIR": str(tmp_path)}, subprocess.PIPE
    with subprocess.Popen(program, env=env, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"at (http://127\.0\.0\.1:\d+) ", process.stdout.readline())
            assert found
            assert "<title>spacenet studio</title>" in httpx.get(found[1]).text
            assert httpx.get(found[1], headers={"host": "evil.example"}).status_code == 421
            assert len(folders := list(tmp_path.glob(f"{command.FOLDER}*"))) == 1
            assert folders[0] != leftover
            assert folders[0].stat().st_mode & 0o77 == 0
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=20)
            assert (process.returncode, out, err) == (0, "stopped\n", "")
        finally:
            process.kill()
    assert not list(tmp_path.iterdir())


def test_what_is_missing_or_wrong_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    save_model(tmp_path / "table.safetensors", model())
    assert main(["studio", str(tmp_path / "table.safetensors"), "--no-browser"]) == 2
    assert "shows images to a model" in capsys.readouterr().err
    with open_listener("127.0.0.1", 0) as taken:
        assert main(["studio", "--no-browser", "--port", str(taken.getsockname()[1])]) == 2
    assert "--port" in capsys.readouterr().err

    def missing(feature: str, extra: str, *modules: str) -> None:
        raise MissingExtraError(f'{feature} needs {modules[0]}: pip install "spacenet-cl[{extra}]"')

    monkeypatch.setattr(command, "require_extra", missing)
    assert main(["studio"]) == 2
    assert "spacenet-cl[studio]" in capsys.readouterr().err
