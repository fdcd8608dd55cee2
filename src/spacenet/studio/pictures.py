"""From an image file to a sample of the model, and a small picture for the page; the file itself is not kept."""

from dataclasses import dataclass
from io import BytesIO
from typing import Literal

import numpy as np

from spacenet.data.features import image_format_of
from spacenet.data.images import ImageFormat, decode_image
from spacenet.data.preprocessing import Array
from spacenet.errors import DataError
from spacenet.serve.images import DECODING
from spacenet.serve.store import Served
from spacenet.studio.drawings import SIDE, DrawingInput
from spacenet.utils.extras import require_extra

THUMBNAIL = 96
"""Pixels of the longest side of what the page shows of a photo."""
DRAWINGS = ImageFormat((1, SIDE, SIDE), resize=True, encoder=DrawingInput())
SHOWS = "the studio shows images to a model"
Kind = Literal["drawings", "photos", "images"]
"""What a model takes: drawings of 28 × 28 pixels, photos by way of an encoder, or images of a size of its own."""


@dataclass(frozen=True)
class Picture:
    """A picture as the model sees it: for a model with an encoder its features, not its pixels."""

    sample: Array
    thumbnail: bytes
    """A PNG file."""


def find_kind(served: Served) -> Kind:
    """What kind of pictures a model takes. Raises `DataError` for a model that takes none."""
    model = served.model
    if model.config.preprocessing.encoder:
        if served.encoder is None:
            raise DataError(str((served.description["encoder"] or {}).get("problem")))
        if served.encoder.images is None:
            raise DataError(f"{SHOWS}; this one takes {served.encoder.takes.needs}")
        return "photos"
    if model.input_shape in ((1, SIDE, SIDE), (SIDE, SIDE)):
        return "drawings"
    try:
        ImageFormat.for_model(model.input_shape, served.target.scale, resize=True)
    except DataError as error:
        raise DataError(f"{SHOWS}; {error.message.removeprefix('images: ')}") from error
    return "images"


def read_picture(content: bytes, served: Served) -> Picture:
    """The picture in an image file. Raises `DataError` for what is none."""
    kind, shape = find_kind(served), served.model.input_shape
    if kind == "photos":
        assert served.encoder is not None
        pixels = _decode(content, image_format_of(served.encoder))
        return Picture(served.encoder.encode(pixels[None], threads=1)[0], _encode_png(pixels))
    if kind == "drawings":
        pixels = _decode(content, DRAWINGS)
        return Picture(pixels.reshape(shape), _encode_png(255 - pixels))
    pixels = _decode(content, ImageFormat.for_model(shape, served.target.scale, resize=True))
    return Picture(pixels, _encode_png(pixels))


def _decode(content: bytes, form: ImageFormat) -> Array:
    with DECODING:
        return decode_image(content, form, "the image")


def _encode_png(pixels: Array) -> bytes:
    """Bytes (h, w) or (channels, h, w) as a small PNG file."""
    pillow = require_extra("images", "images", "PIL.Image")
    rows = pixels.transpose(1, 2, 0) if pixels.ndim == 3 else pixels
    image = pillow.fromarray(np.ascontiguousarray(rows[..., 0] if rows.shape[-1] == 1 else rows))
    image.thumbnail((THUMBNAIL, THUMBNAIL))
    stream = BytesIO()
    image.save(stream, "PNG")
    return stream.getvalue()
