"""The parts of `python -m benchmarks.studio` that need neither data sets nor a browser."""

import io
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.studio import _few_digits, _png_files
from benchmarks.studio_page import _installed
from spacenet.studio.drawings import center_drawing
from tests.studio.support import draw

Image = pytest.importorskip("PIL.Image", reason="the studio needs the extra 'studio'")


def test_few_drawings_are_learned_and_others_found() -> None:
    names = ["0", "1", "2", "3", "4", "star"]
    x = np.stack([center_drawing(np.asarray(Image.open(io.BytesIO(draw(n, s))))) for n in names for s in range(8)])
    y = np.repeat(range(6), 8)
    accuracy, false, found = _few_digits(x[y < 5], y[y < 5], x, y, count=6, varied=True, seed=0)
    assert (accuracy, found) == (1.0, 1.0)
    assert false <= 0.1


def test_images_of_a_class_become_png_files() -> None:
    x = np.random.default_rng(0).integers(0, 256, (6, 3, 8, 8), np.uint8)
    files = _png_files(x, np.array([0, 1, 0, 1, 0, 1]), 1, 2)
    assert [content[:4] for content in files] == [b"\x89PNG"] * 2


def test_packages_are_counted_once() -> None:
    found = _installed(Path(sys.executable))
    assert found["more_packages"] >= 0
    assert found["more_bytes"] >= 0
