"""Drawings as samples: 28 × 28 pixels, as the digits of MNIST are, and variations of the few that a person draws."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import ndimage

from spacenet.data.preprocessing import Array
from spacenet.encoders.inputs import ImageInput
from spacenet.errors import DataError
from spacenet.utils.extras import require_extra

SIDE, BOX = 28, 20
"""Pixels of a sample's side, and of the square into which the drawing itself is fitted."""
FAINT = 0.15
"""Of the strongest ink: what is fainter is paper, as in the photo of a drawing."""
LEAST_INK = 32
"""Difference between ink and paper, of 255, below which a picture is empty."""
PICTURES, MOST_COPIES = 250, 30
"""Pictures of a class to learn from, variations included, and variations of one drawing at most."""
ANGLE, SCALE, SHEAR, SHIFT = 22.0, 0.3, 0.5, 2.5
"""The largest changes of a variation: degrees, the logarithm of the size, and pixels. With smaller ones the model would
call too many new drawings of the same classes unknown: see docs/studio.md."""


@dataclass(frozen=True)
class DrawingInput(ImageInput):
    """Pictures that are prepared as MNIST's were: the ink in a box of 20 pixels, its center of mass in the middle."""

    size: int = SIDE

    @property
    def shape(self) -> tuple[int, int, int]:
        return 1, self.size, self.size

    def prepare_image(self, image: Any) -> Array:
        return center_drawing(np.asarray(image.convert("L")))[None]


def center_drawing(pixels: Array) -> Array:
    """A gray picture of any size, dark on light or light on dark, as 28 × 28 bytes: ink is 255, paper 0."""
    ink = _find_ink(pixels)
    rows, columns = np.flatnonzero(ink.any(1)), np.flatnonzero(ink.any(0))
    ink = ink[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    factor = BOX / max(ink.shape)
    height, width = (max(1, round(factor * side)) for side in ink.shape)
    pillow = require_extra("images", "images", "PIL.Image")
    small = np.asarray(pillow.fromarray(ink).resize((width, height), pillow.Resampling.BILINEAR))
    made = np.zeros((SIDE, SIDE), np.uint8)
    top, left = (_place(small.sum(1 - axis), small.shape[axis]) for axis in (0, 1))
    made[top : top + height, left : left + width] = small
    return made


def _find_ink(pixels: Array) -> Array:
    """How much ink there is at each pixel, 0 to 255. The border is paper."""
    border = np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])
    ink = np.abs(pixels.astype(np.float32) - float(np.median(border)))
    most = float(ink.max())
    if most < LEAST_INK:
        raise DataError("the picture is empty: there is nothing drawn on it")
    return np.where(ink < FAINT * most, 0.0, ink * (255 / most)).astype(np.uint8)


def _place(sums: Array, length: int) -> int:
    """Where something begins whose center of mass, along one axis, is to be in the middle."""
    weights = sums.astype(np.float64)
    center = float((weights * (np.arange(length) + 0.5)).sum() / weights.sum())
    return int(np.clip(round(SIDE / 2 - center), 0, SIDE - length))


def vary_drawings(x: Array, y: Array, seed: int = 0) -> tuple[Array, Array]:
    """Drawings (n, …, 28, 28) and their labels, with variations of each: turned, slanted, larger, smaller, shifted.

    Classes with few drawings get many variations of each; those with `PICTURES` drawings get none.
    """
    rng = np.random.default_rng(seed)
    counts = {label: int((y == label).sum()) for label in dict.fromkeys(y.tolist())}
    pictures, names = [x], [y]
    for row, label in enumerate(y.tolist()):
        copies = min(MOST_COPIES, max(0, round(PICTURES / counts[label]) - 1))
        made = [_vary(x[row].reshape(SIDE, SIDE), rng).reshape(x.shape[1:]) for _ in range(copies)]
        pictures += [np.stack(made)] if made else []
        names.append(np.repeat(y[row : row + 1], copies))
    return np.concatenate(pictures), np.concatenate(names)


def _vary(picture: Array, rng: np.random.Generator) -> Array:
    angle, (high, wide) = np.deg2rad(rng.uniform(-ANGLE, ANGLE)), np.exp(rng.uniform(-SCALE, SCALE, 2))
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    matrix = turn @ np.array([[high, 0.0], [rng.uniform(-SHEAR, SHEAR), wide]])
    middle = np.full(2, (SIDE - 1) / 2)
    offset = middle - matrix @ middle + rng.uniform(-SHIFT, SHIFT, 2)
    made = ndimage.affine_transform(picture.astype(np.float32), matrix, offset, order=1)
    return np.asarray(np.clip(made, 0, 255), np.uint8)
