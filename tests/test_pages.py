"""Pages of the docs run as they are written: all their blocks, one after the other, in an empty folder."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
PORT = "8321"
pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell")


def free_port() -> str:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return str(taken.getsockname()[1])


def script(page: str) -> str:
    """The blocks as one shell script, Python ones handed to Python."""
    blocks = re.findall(r"```(bash|python)\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) > 5
    parts = [f"python - <<'END'\n{code}END\n" if kind == "python" else code for kind, code in blocks]
    return "set -e\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n" + "\n".join(parts)


def run(page: str, folder: Path) -> str:
    """What the page's commands print."""
    done = subprocess.run(
        ["bash", "-c", script(page).replace(PORT, free_port())],
        cwd=folder,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "COLUMNS": "100"},
        capture_output=True,
        text=True,
        timeout=115,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def test_the_guide_runs_as_written(tmp_path: Path) -> None:
    out = run("deploy.md", tmp_path)
    assert "classes: 0 1 2 3 4 5\n" in out
    assert int(re.findall(r"accuracy on them: (\d+) %", out)[0]) > 75
    assert "Task 3 learned" in out
    said = [re.findall(rf"{who} says: (.*)", out)[0] for who in ("onnxruntime", "the service")]
    assert said[0] == said[1]
    assert len(said[0].split()) == 5
    assert "tasks known: 3\n" in out
    assert "tasks known: 4 - done" in out
    assert re.search(r"classes +10: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9", out)
    assert {path.name for path in tmp_path.iterdir()} == {
        "model.safetensors",
        "model.onnx",
        "six-and-seven.npz",
        "eight-and-nine.npz",
        "questions.npy",
    }


def test_the_tutorial_runs_as_written(tmp_path: Path) -> None:
    out = run("tutorial.md", tmp_path)
    assert "\nthe same\n" in out
    assert "spacenet on custom, seed 0" in out
    assert (tmp_path / "runs" / "search" / "best.toml").is_file()
    assert re.search(r"^0 +[a-z]+ +\d+\.\d+ %$", out, re.MULTILINE)
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {"first", "again", "rivals", "words", "search"}
