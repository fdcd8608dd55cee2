"""Image files in a request: one as the body, several in a form, or as base64 in JSON. They may be malicious."""

import base64
import binascii
from collections.abc import Sequence
from threading import Lock

import numpy as np

from spacenet.data.features import image_format_of
from spacenet.data.images import ImageFormat, count_pixels, decode_image
from spacenet.data.parts import Target
from spacenet.data.preprocessing import Array
from spacenet.errors import DataError
from spacenet.serve.messages import RequestError

MAX_IMAGES = 256
"""Images in one request to predict; an image of a few bytes takes as long to encode as any other."""
MAX_IMAGES_TO_LEARN = 1000
MAX_REQUEST_PIXELS = 500_000_000
"""Of all images of a request; a file of a few kilobytes can hold a tenth of them."""
DECODING = Lock()
"""One image is decoded at a time: a small file may be a large image."""
File = tuple[str, bytes]
"""What messages call an image, and the content of its file."""


def decode_files(files: Sequence[File], target: Target, most: int) -> Array:
    """Image files as samples for a model, (n, …)."""
    form, pixels, images = _format(target), 0, []
    if not files:
        raise RequestError("there are no images; send at least one")
    if len(files) > most:
        raise RequestError(f"{len(files):,} images are more than {most:,}; send fewer at a time", 413)
    for where, content in files:
        pixels += count_pixels(content, where)
        if pixels > MAX_REQUEST_PIXELS:
            raise RequestError(f"the images have more than {MAX_REQUEST_PIXELS:,} pixels; send fewer at a time", 413)
        with DECODING:
            images.append(_decode(content, form, where))
    return np.stack(images)


def read_base64(texts: Sequence[str]) -> list[File]:
    """Image files from base64, also with what comes before it in a data URL."""
    return [(f"images[{number}]", _from_base64(text, number)) for number, text in enumerate(texts)]


def _from_base64(text: str, number: int) -> bytes:
    if text.startswith("data:"):
        text = text.partition(",")[2]
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise RequestError(f"images[{number}] is not base64: {error}") from error


def _format(target: Target) -> ImageFormat:
    if target.encoder is not None and target.encoder.images is not None:
        return image_format_of(target.encoder)
    if len(target.shape) == 1:
        raise RequestError("the service has no encoder for image files; GET /model says what it takes", 415)
    try:
        return ImageFormat.for_model(target.shape, target.scale, target.resize)
    except DataError as error:
        raise RequestError(error.message, 415) from error


def _decode(content: bytes, form: ImageFormat, where: str) -> Array:
    try:
        return decode_image(content, form, where)
    except DataError as error:
        remedy = " Add ?resize=true to have images resized." if error.cli else ""
        raise RequestError(error.message + remedy) from error
