"""Pages run as they are written: all their blocks, one after the other, in an empty folder."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

ROOT = Path(__file__).parents[1]
PORT = "8321"
pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell")


def free_port() -> str:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return str(taken.getsockname()[1])


def script(page: str) -> str:
    """The blocks as one shell script, Python ones handed to Python."""
    blocks = re.findall(r"```(bash|python)\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) > 1
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
    out = run("docs/deploy.md", tmp_path)
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
    out = run("docs/tutorial.md", tmp_path)
    assert "\nthe same\n" in out
    assert "spacenet on custom, seed 0" in out
    assert (tmp_path / "runs" / "search" / "best.toml").is_file()
    assert re.search(r"^0 +[a-z]+ +\d+\.\d+ %$", out, re.MULTILINE)
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {"first", "again", "methods", "words", "search"}
    assert "Stream('custom': 3 tasks, 10 classes, 1,257 training and 540 test samples of shape 8×8)" in out


def test_the_readme_runs_as_written(tmp_path: Path) -> None:
    for name in ("bird", "cat"):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for number in range(5):
            Image.new("L", (20, 16)).save(tmp_path / "photos" / name / f"{number}.png")
    out = run("README.md", tmp_path)
    assert "spacenet on split-digits, seed 0" in out
    assert "| joint | Bound | " in out
    assert "[0 1 2 3 4 5 6 7 8 9]" in out
    assert {path.name for path in tmp_path.iterdir()} == {"photos", "report.html", "model.safetensors"}


def test_the_terminal_output_in_the_readme_is_that_of_the_command(tmp_path: Path) -> None:
    """Apart from the times."""
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    example = re.search(r"\$ spacenet (.*)\n((?:.*\n)*?)```", page)
    assert example is not None
    done = subprocess.run(
        [sys.executable, "-m", "spacenet", *example[1].split()],
        cwd=tmp_path,
        env={**os.environ, "COLUMNS": "120"},
        capture_output=True,
        text=True,
        check=True,
    )
    printed = f"{done.stderr}\n{done.stdout}"
    lines = {_without_times(line) for line in printed.splitlines()}
    assert [line for line in example[2].splitlines() if _without_times(line) not in lines] == []


def _without_times(line: str) -> str:
    return re.sub(r" +\d+\.\d s", " T", line).rstrip()


@pytest.mark.parametrize("page", ["docs/api.md", "docs/own-net.md"])
def test_the_page_runs_as_written(page: str, tmp_path: Path) -> None:
    run(page, tmp_path)
