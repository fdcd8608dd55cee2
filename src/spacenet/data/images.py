"""Image files as samples: grayscale or RGB, in the size that is needed."""

import logging
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from spacenet.data.arrays import Shape, split_into_chunks
from spacenet.data.checks import PIXEL_SCALE
from spacenet.data.preprocessing import Array
from spacenet.encoders.inputs import ImageInput
from spacenet.errors import DataError
from spacenet.utils.extras import require_extra
from spacenet.utils.progress import track

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".webp")
FORMATS = ("PNG", "JPEG", "BMP", "WEBP")
"""The decoders that may be used, whatever a file's name is; the fewer, the safer."""
MAX_PIXELS = 50_000_000
"""A file of a few KB can claim to be an image that fills the memory; photos have fewer pixels than this."""
MIN_FILES = 4
"""Fewer are not worth starting threads."""
MIN_BYTES = 8 * 1024
"""Of a file: smaller images take less time to decode than threads to take turns."""
EIGHT_BIT_MODES = ("1", "L", "LA", "P", "PA", "RGB", "RGBA", "CMYK", "YCbCr")
"""Pillow's modes that convert to grayscale or RGB without loss of contrast."""
ORIENTATION, TURNED = 0x0112, (5, 6, 7, 8)
"""The tag that says how a camera was held, and its values for images whose width and height are exchanged."""
NAMED = 5
"""Files that cannot be read of which a warning gives the reasons; more are counted."""
Item = TypeVar("Item")
log = logging.getLogger("spacenet")


@dataclass
class Damage:
    """What becomes of images that cannot be read: an error, or they are left out and `report` names them."""

    skip: bool = False
    found: list[DataError] = field(default_factory=list)

    def note(self, error: DataError) -> None:
        if not self.skip:
            raise error
        self.found.append(error)

    def report(self, total: int) -> None:
        if self.found:
            named = "; ".join(error.message for error in self.found[:NAMED])
            more = f"; and {len(self.found) - NAMED} more" if len(self.found) > NAMED else ""
            log.warning(
                "spacenet: warning: %d of %d images cannot be read and are left out: %s%s",
                len(self.found),
                total,
                named,
                more,
            )


@dataclass(frozen=True)
class ImageFormat:
    """The shape that images must have as samples, and whether images of other sizes are resized."""

    shape: Shape
    resize: bool
    encoder: ImageInput | None = None
    """How they are prepared for an encoder, if there is one."""

    @classmethod
    def for_encoder(cls, images: ImageInput) -> "ImageFormat":
        return cls(images.shape, resize=True, encoder=images)

    @classmethod
    def for_model(cls, shape: Shape, scale: float, resize: bool) -> "ImageFormat":
        """The format for a model that takes inputs of this shape and scale."""
        if len(shape) not in (2, 3) or (len(shape) == 3 and shape[0] not in (1, 3)):
            raise DataError(f"images: the model takes samples of the shape {shape}, which are not images")
        if scale != PIXEL_SCALE:
            raise DataError(
                "images: the model was not trained on bytes (0 to 255), so it cannot interpret pixels; "
                "use arrays (npy, npz or csv) with values like those that it was trained on"
            )
        return cls(shape, resize)

    @property
    def mode(self) -> str:
        """Pillow's name for it."""
        return "RGB" if len(self.shape) == 3 and self.shape[0] == 3 else "L"

    @property
    def size(self) -> tuple[int, int]:
        """Width and height."""
        return self.shape[-1], self.shape[-2]


def list_images(folder: Path) -> Iterator[Path]:
    """All image files in a folder and its sub-folders, sorted within each folder; hidden ones are left out."""
    empty = True
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if name.lower().endswith(SUFFIXES) and not name.startswith("."):
                empty = False
                yield Path(place, name)
    if empty:
        raise DataError(f"{folder}: has no images ({', '.join(SUFFIXES)})")


def read_headers(
    files: Sequence[Path], progress: bool = False, damage: Damage | None = None
) -> list[tuple[Path, tuple[int, int], str]]:
    """Width and height of each image that can be read, and Pillow's name for its pixels; they are not decoded."""
    found = []
    with track("looking at the sizes of images", len(files), "images", progress) as advance:
        for chunk in split_into_chunks(files, (1,)):
            kept, headers = _map_files(_read_header, chunk, damage)
            found += [(path, *header) for path, header in zip(kept, headers, strict=True)]
            advance(len(chunk))
    return found


def read_images(
    files: Iterable[Path], image_format: ImageFormat, damage: Damage | None = None
) -> Iterator[tuple[list[Path], Array]]:
    """Images as bytes in the format's shape, in chunks, and the files they come from; decoded by several threads."""
    for chunk in split_into_chunks(files, image_format.shape):
        kept, images = decode_images(chunk, image_format, damage)
        if kept:
            yield kept, images


def decode_images(
    files: Sequence[Path], image_format: ImageFormat, damage: Damage | None = None
) -> tuple[list[Path], Array]:
    """All images at once, likewise."""
    kept, images = _map_files(lambda path: _read_image(path, image_format), files, damage)
    return kept, np.stack(images) if images else np.empty((0, *image_format.shape), np.uint8)


def decode_image(content: bytes, image_format: ImageFormat, where: str) -> Array:
    """One image file that is in memory, as bytes in the format's shape."""
    return _read_image(BytesIO(content), image_format, where)


def count_pixels(content: bytes, where: str) -> int:
    """How many pixels an image file in memory says that it has; they are not decoded."""
    with _open(BytesIO(content), where) as image:
        width, height = image.size
        return int(width * height)


def _map_files(
    function: Callable[[Path], Item], files: Sequence[Path], damage: Damage | None
) -> tuple[list[Path], list[Item]]:
    """The function of each file, for photos by several threads: Pillow decodes without the interpreter's lock. Files
    that cannot be read are left out, if that is what becomes of them."""
    damage = damage or Damage()

    def attempt(path: Path) -> Item | DataError:
        try:
            return function(path)
        except DataError as error:
            return error

    with warnings.catch_warnings():  # for all threads: Python's list of filters is not made for several
        warnings.simplefilter("ignore")  # about unusual metadata; what matters is checked here
        warnings.simplefilter("error", _pillow().DecompressionBombWarning)
        if len(files) < MIN_FILES or files[0].stat().st_size < MIN_BYTES:
            found = list(map(attempt, files))
        else:
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                found = list(pool.map(attempt, files))
    kept, results = list[Path](), list[Item]()
    for path, result in zip(files, found, strict=True):
        if isinstance(result, DataError):
            damage.note(result)
        else:
            kept.append(path)
            results.append(result)
    return kept, results


def _read_header(path: Path) -> tuple[tuple[int, int], str]:
    """Width and height of an image as it is shown, and Pillow's name for its kind of pixels; they are not decoded."""
    with _open(path) as image:
        width, height = image.size
        turned = image.getexif().get(ORIENTATION) in TURNED
        return (height, width) if turned else (width, height), image.mode


def _read_image(source: Path | BytesIO, image_format: ImageFormat, where: str = "") -> Array:
    """One image as bytes, in the format's shape, the way up that the camera noted."""
    path = where or source
    with _open(source, where) as image:
        image = require_extra("images", "images", "PIL.ImageOps").exif_transpose(image)
        if image.size != image_format.size and not image_format.resize:
            found, wanted = (" × ".join(map(str, size)) for size in (image.size, image_format.size))
            raise DataError(
                f"{path}: has {found} pixels; the model takes {wanted}.",
                cli="Use --resize to resize images.",
                python="Pass resize=True to resize images.",
            )
        if image.mode in ("P", "PA"):
            image = image.convert("RGBA")  # a palette may have transparency, which is ignored as in other modes
        image = image.convert(image_format.mode)
        if image_format.encoder is not None:
            return image_format.encoder.prepare_image(image)
        if image.size != image_format.size:
            image = image.resize(image_format.size, _pillow().Resampling.BILINEAR)
        pixels = np.asarray(image)
        return (pixels.transpose(2, 0, 1) if image_format.mode == "RGB" else pixels).reshape(image_format.shape)


def _pillow() -> Any:
    return require_extra("images", "images", "PIL.Image")


@contextmanager
def _open(source: Path | BytesIO, where: str = "") -> Iterator[Any]:
    """Open an image and check its header; errors, also those of decoding it, become a `DataError`."""
    library, path = _pillow(), where or source
    try:
        with library.open(source, formats=FORMATS) as image:
            width, height = image.size
            if width * height > MAX_PIXELS:
                size = f"{width} × {height} pixels; at most {MAX_PIXELS:,} in all"
                raise DataError(f"{path}: too large for an image ({size})")
            if image.mode not in EIGHT_BIT_MODES:
                raise DataError(f"{path}: has more than 8 bits per pixel and channel ({image.mode}); save it with 8")
            yield image
    except DataError:
        raise
    except (library.DecompressionBombError, library.DecompressionBombWarning) as error:
        raise DataError(f"{path}: too large for an image ({error})") from error
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file") from error
    except Exception as error:  # a damaged image can make a decoder raise anything
        raise DataError(f"{path}: not an image that can be read ({error})") from error
