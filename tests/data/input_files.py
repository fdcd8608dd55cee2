"""Input files for models of three shapes, and reading them."""

import io
from pathlib import Path

import numpy as np
from PIL import Image

from spacenet.data.inputs import Chunk, read_inputs
from spacenet.data.parts import Target

RNG = np.random.default_rng(0)
FLAT, GREY, COLOR = (8,), (4, 6), (3, 4, 6)
X = RNG.normal(size=(5, 8)).astype(np.float32)


SCALES = {FLAT: 1.0, GREY: 1 / 255, COLOR: 1 / 255}
"""The scale of a model that takes each shape."""
NOTHING = io.BufferedReader(io.BytesIO())


def read(*names: object, shape: tuple[int, ...] = FLAT, stdin: bytes = b"", resize: bool = False) -> list[Chunk]:
    stream = io.BufferedReader(io.BytesIO(stdin))
    return list(read_inputs([str(name) for name in names], Target(shape, SCALES[shape], resize), stream))


def values(chunks: list[Chunk]) -> np.ndarray:
    return np.concatenate([chunk.x for chunk in chunks])


def npy_bytes(x: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, x)
    return stream.getvalue()


def npy(path: Path, x: np.ndarray) -> Path:
    path.write_bytes(npy_bytes(x))
    return path


def csv_file(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


LINES = "".join(",".join(map(repr, row)) + "\n" for row in X.astype(float).tolist())


def image_file(path: Path, mode: str = "L", size: tuple[int, int] = (6, 4)) -> Path:
    path.parent.mkdir(exist_ok=True, parents=True)
    channels = () if mode in ("L", "P", "I;16") else (len(mode),)
    pixels = RNG.integers(0, 256, (size[1], size[0], *channels), dtype=np.uint16 if mode == "I;16" else np.uint8)
    image = Image.fromarray(pixels) if mode != "P" else Image.fromarray(pixels).convert("P")
    assert image.mode == mode
    image.save(path)
    return path
