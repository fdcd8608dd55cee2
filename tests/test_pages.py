"""Pages run as they are written, with fewer seeds; `python -m tests.campaigns.pages` runs them to the letter."""

import os
import re
from pathlib import Path

import pytest

from tests.campaigns.pages import PAGES, ROOT, blocks_of, run_page
from tests.warm import run_script

pytestmark = [pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell"), pytest.mark.timeout(300)]


def test_the_guide_runs_as_written(tmp_path: Path) -> None:
    out = run_page("docs/deploy.md", tmp_path, quick=True)
    assert "classes: 0 1 2 3 4 5\n" in out
    assert int(re.findall(r"accuracy on them: (\d+) %", out)[0]) > 75
    assert "Task 3 learned" in out
    said = [re.findall(rf"{who} says: (.*)", out)[0] for who in ("onnxruntime", "the service")]
    assert said[0] == said[1]
    assert len(said[0].split()) == 5
    for title in (
        "Class 7 renamed to seven",
        "Last change undone",
        "Classes 0, 6 merged into round",
        "Class 1 removed",
    ):
        assert title in out
    assert "tasks after forgetting: [(0, 1, 2), (3, 4, 5), ()]" in out
    assert "classes left: 0 1 2 3 4 5\n" in out
    assert re.search(r"^tasks: 3 room for more: \d+$", out, re.MULTILINE), "updates take no space"
    assert re.search(r"^the loader says:( -?\d){5}$", out, re.MULTILINE)
    assert "and of noise: -1 -1 -1\n" in out
    assert "room for more tasks: None\n" in out
    assert "tasks known: 3\n" in out
    assert re.search(r"^unknown - top: \[\] - set: \[\]$", out, re.MULTILINE)
    assert re.search(r"as tensors: (\d+ ){5}- version 4", out)
    assert 'spacenet_classes{model="model"} 10.0' in out
    assert "tasks known: 4 - done" in out
    assert "classes: 0 1 2 3 4 5 6 7 8 99\n" in out
    assert re.search(r"classes +10: 0, 1, 2, 3, 4, 5, 6, 7, 8, 99", out)
    assert {path.name for path in tmp_path.iterdir()} - {"__pycache__"} == {
        "model.safetensors",
        "model.safetensors.undo",
        "model.safetensors.jobs.json",
        "copy.safetensors",
        "model.onnx",
        "onnx_predictor.py",
        "six-and-seven.npz",
        "eight-and-nine.npz",
        "questions.npy",
        "photo.png",
        "photos.safetensors",
        "photos.onnx",
    }
    said = [re.findall(rf"{who} says: (.*)", out)[0] for who in ("the model", "its file")]
    assert said[0] == said[1]


def test_the_researchers_tutorial_runs_as_written(tmp_path: Path) -> None:
    out = run_page("docs/tutorial-researcher.md", tmp_path, quick=True)
    assert "\nthe same\n" in out
    assert "\\toprule" in out
    assert (tmp_path / "runs" / "search" / "best.toml").is_file()


@pytest.mark.usefixtures("_undrawn")
def test_the_engineers_tutorial_runs_as_written(tmp_path: Path) -> None:
    out = run_page("docs/tutorial-engineer.md", tmp_path, quick=True)
    assert "Task 2 learned" in out
    assert float(re.findall(r"accuracy +(\d+\.\d+) % +of 178 samples", out)[0]) > 85
    assert re.search(r"\['barolo' 'grignolino' 'barbera'\] \['barolo' ", out)
    assert re.search(r"photos/sky/0.png +sky ", out)
    assert (tmp_path / "evaluation.html").is_file()


@pytest.mark.usefixtures("_undrawn")
def test_the_page_on_data_runs_as_written(tmp_path: Path) -> None:
    out = run_page("docs/own-data.md", tmp_path, quick=True)
    assert re.search(r"^0 +[a-z]+ +\d+\.\d+ %$", out, re.MULTILINE)
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {"words", "search"}
    assert re.search(r"Stream\('\w+': 3 tasks, 10 classes, 1,257 training and 540 test samples of shape 8×8\)", out)


@pytest.mark.usefixtures("_undrawn")
def test_the_tutorial_on_photos_runs_as_written(tmp_path: Path) -> None:
    out = run_page("docs/tutorial-photos.md", tmp_path, quick=True)
    assert "test/plum/0.jpg: plum\ntest/orange/0.jpg: orange\n" in out
    assert float(re.findall(r"accuracy +(\d+\.\d+) % +of 20 samples", out)[0]) >= 90
    assert (tmp_path / "fruit.onnx").stat().st_size > 10 * 1024**2  # the encoder is in it


def test_the_page_on_reports_runs_as_written(tmp_path: Path) -> None:
    out = run_page("docs/reports.md", tmp_path, quick=True)
    assert out.count("\\toprule") >= 3
    assert {path.suffix for path in (tmp_path / "figures").iterdir()} == {".pdf"}
    assert {path.suffix for path in (tmp_path / "tables").iterdir()} == {".tex", ".csv"}


def test_the_readme_runs_as_written(tmp_path: Path) -> None:
    out = run_page("README.md", tmp_path, quick=True)
    assert "| joint | Bound | " in out
    assert "[0 1 2 3 4 5 6 7 8 9]" in out
    assert {path.name for path in tmp_path.iterdir()} == {"model.safetensors"}


@pytest.mark.usefixtures("_undrawn")  # the pages on reports and for researchers draw
@pytest.mark.parametrize(
    "page", ["docs/api.md", "docs/encoders.md", "docs/experts.md", "docs/own-net.md", "docs/tutorial-method.md"]
)
def test_the_page_runs_as_written(page: str, tmp_path: Path) -> None:
    run_page(page, tmp_path, quick=True)


def test_every_page_with_blocks_is_run() -> None:
    pages = {str(path.relative_to(ROOT)) for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))}
    assert {page for page in pages if blocks_of(page)} == {*PAGES, "docs/own-method.md"}


@pytest.mark.usefixtures("_undrawn")
def test_the_terminal_output_on_the_first_page_is_that_of_the_command(tmp_path: Path) -> None:
    """Apart from the times."""
    page = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    example = re.search(r"\$ spacenet (.*)\n((?:.*\n)*?)```", page)
    assert example is not None
    code, out, err = run_script(f"spacenet {example[1]}", tmp_path, timeout=60, columns=120)
    assert code == 0, err
    printed = f"{err}\n{out}"
    lines = {_without_times(line) for line in printed.splitlines()}
    assert [line for line in example[2].splitlines() if _without_times(line) not in lines] == []


def _without_times(line: str) -> str:
    return re.sub(r" +\d+\.\d s", " T", line).rstrip()
