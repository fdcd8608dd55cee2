"""Image files as samples: grey or in colour, in the model's size."""

import os
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spacenet.data.arrays import Shape, samples_per_chunk
from spacenet.data.preprocessing import Array
from spacenet.errors import DataError
from spacenet.utils.extras import require_extra

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".webp")
FORMATS = ("PNG", "JPEG", "BMP", "WEBP")
"""Decoders that a file may call for, whatever its name; the fewer, the safer."""
MAX_PIXELS = 50_000_000
"""A file of a few KB can claim to be an image that fills the memory; cameras stay below this."""
EIGHT_BITS = ("1", "L", "LA", "P", "PA", "RGB", "RGBA", "CMYK", "YCbCr")
"""Pillow's modes that turn into grey or RGB without loss of contrast."""
SCALE = 1 / 255
"""Of models that learned from bytes."""


@dataclass(frozen=True)
class ImageForm:
    """What images must be for a model."""

    shape: Shape
    resize: bool

    @classmethod
    def of(cls, shape: Shape, scale: float, resize: bool) -> "ImageForm":
        """For a model that takes this shape; not every model can take images."""
        if len(shape) not in (2, 3) or (len(shape) == 3 and shape[0] not in (1, 3)):
            raise DataError(f"images: the model takes samples of the shape {shape}, which are no images")
        if scale != SCALE:
            raise DataError(
                "images: the model did not learn from bytes (0 to 255), so pixels do not mean the same to it; "
                "give it arrays (npy, npz or csv) with values like those that it learned from"
            )
        return cls(shape, resize)

    @property
    def mode(self) -> str:
        return "RGB" if len(self.shape) == 3 and self.shape[0] == 3 else "L"

    @property
    def size(self) -> tuple[int, int]:
        """Width and height."""
        return self.shape[-1], self.shape[-2]


def images_in(folder: Path) -> Iterator[Path]:
    """All image files in a folder and those within, sorted in each; hidden ones are left out."""
    none = True
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if name.lower().endswith(SUFFIXES) and not name.startswith("."):
                none = False
                yield Path(place, name)
    if none:
        raise DataError(f"{folder}: holds no images ({', '.join(SUFFIXES)})")


def read_images(paths: Iterable[Path], form: ImageForm) -> Iterator[tuple[list[Path], Array]]:
    """Images with their names, some at a time."""
    names: list[Path] = []
    pixels: list[Array] = []
    for path in paths:
        names.append(path)
        pixels.append(read_image(path, form))
        if len(names) == samples_per_chunk(form.shape):
            yield names, np.stack(pixels)
            names, pixels = [], []
    if names:
        yield names, np.stack(pixels)


def read_image(path: Path, form: ImageForm) -> Array:
    """One image, as bytes of the model's shape."""
    library = require_extra("images", "images", "PIL.Image")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of odd metadata; what matters is checked here
            warnings.simplefilter("error", library.DecompressionBombWarning)
            with library.open(path, formats=FORMATS) as image:
                _check(path, image, form)
                return _pixels(image, form)
    except DataError:
        raise
    except (library.DecompressionBombError, library.DecompressionBombWarning) as error:
        raise DataError(f"{path}: too large for an image ({error})") from error
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file") from error
    except Exception as error:  # a damaged image can make a decoder raise anything
        raise DataError(f"{path}: not an image that can be read ({error})") from error


def _check(path: Path, image: Any, form: ImageForm) -> None:
    """Before any pixel is decoded."""
    width, height = image.size
    if width * height > MAX_PIXELS:
        raise DataError(f"{path}: too large for an image ({width} × {height} pixels; at most {MAX_PIXELS:,} in all)")
    if image.mode not in EIGHT_BITS:
        raise DataError(f"{path}: has more than 8 bits per pixel and channel ({image.mode}); save it with 8")
    if image.size != form.size and not form.resize:
        wanted = " × ".join(map(str, form.size))
        raise DataError(f"{path}: has {width} × {height} pixels; the model takes {wanted} (--resize brings it there)")


def _pixels(image: Any, form: ImageForm) -> Array:
    if image.mode in ("P", "PA"):
        image = image.convert("RGBA")  # a palette may have transparency, which is ignored as it is elsewhere
    image = image.convert(form.mode)
    if image.size != form.size:
        image = image.resize(form.size, require_extra("images", "images", "PIL.Image").Resampling.BILINEAR)
    pixels = np.asarray(image)
    return (pixels.transpose(2, 0, 1) if form.mode == "RGB" else pixels).reshape(form.shape)
