"""From the body of a request to arrays, checking everything: it may be malicious."""

import math
import sys
import zipfile
from collections.abc import Sequence
from io import BytesIO
from itertools import chain
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from pydantic import ValidationError

from spacenet.data import arrays
from spacenet.data.checks import find_nonfinite, to_native
from spacenet.data.features import image_format_of
from spacenet.data.images import decode_image
from spacenet.data.parts import Target
from spacenet.data.preprocessing import Array
from spacenet.model.labels import Label
from spacenet.serve.messages import EditRequest, LearnRequest, PredictRequest, Request, RequestError

JSON = ("application/json",)
IMAGES = ("image/png", "image/jpeg", "image/webp", "image/bmp")
NPY = ("application/octet-stream", "application/x-npy")
NPZ = ("application/octet-stream", "application/x-npz", "application/zip")
MAX_LABEL = 100  # characters of a label
UNUSABLE = f"a number that is not finite or too large, or a text of more than {MAX_LABEL} letters"
MAX_LABELS_BYTES = 64 * 1024**2
"""Numpy gives every text of an array the space of the longest."""
Form = TypeVar("Form", bound=Request)


DECODING = Lock()
"""One image is decoded at a time: a small file may be a large image."""


def read_inputs(body: bytes, kind: str, top: int, target: Target) -> tuple[Array, int]:
    """A request to /predict: inputs, and how many classes to return (the query's number unless the body has one)."""
    if kind in NPY:
        return _concat(list(arrays.read_npy(BytesIO(body), "the body", target.shape_in))), top
    if kind in IMAGES:
        return _image(body, target), top
    request = _json(body, kind, PredictRequest, (*NPY, *IMAGES))
    return _nested(request.inputs, target.shape), request.top if "top" in request.model_fields_set else top


def read_task(body: bytes, kind: str, target: Target, most: int) -> tuple[Array, Array]:
    """A request to /learn: inputs and labels."""
    if kind in NPZ:
        inputs, given = _npz(body, target, most)
    else:
        request = _json(body, kind, LearnRequest, NPZ)
        inputs, given = _nested(request.inputs, target.shape), request.labels
    if len(given) != len(inputs):
        raise RequestError(f"there are {len(inputs)} inputs and {len(given)} labels; give one label for each input")
    return inputs, _labels(given)


def read_edit(body: bytes, kind: str) -> EditRequest:
    """A request to /edit."""
    request = _json(body, kind, EditRequest, ())
    given = (request.label, request.new, request.into, *(request.labels or ()))
    if not all(_usable(label) for label in given if label is not None):
        raise RequestError(f"labels: {UNUSABLE}")
    return request


def _image(body: bytes, target: Target) -> Array:
    """One image file, prepared for the encoder."""
    if target.encoder is None:
        raise RequestError("the service has no encoder for image files; GET /model says what it takes", 415)
    with DECODING:
        return decode_image(body, image_format_of(target.encoder), "the image")[None]


def _json(body: bytes, kind: str, form: type[Form], others: Sequence[str]) -> Form:
    if kind not in JSON:
        raise RequestError(f"content type {kind or '(none)'}; send one of {', '.join((*JSON, *others))}", 415)
    try:
        return form.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        status = 400 if first["type"] == "json_invalid" else 422
        raise RequestError(f"{where}: {first['msg']}" if where else first["msg"], status) from error


def _nested(inputs: Sequence[Any], shape: tuple[int, ...]) -> Array:
    """Lists of numbers as an array. Checked first, because numpy would convert texts to numbers."""
    if not inputs:
        raise RequestError("inputs is empty; give at least one")
    numbers = chain.from_iterable(_flat(sample, shape, f"inputs[{row}]") for row, sample in enumerate(inputs))
    try:
        flat = np.fromiter(numbers, dtype=np.float64, count=len(inputs) * math.prod(shape))
    except OverflowError as error:
        raise RequestError("inputs: a number is too large") from error
    with np.errstate(over="ignore"):
        x = flat.reshape(len(inputs), *shape).astype(np.float32)  # what a network computes with
    for row in find_nonfinite(x):
        raise RequestError(f"inputs[{row}] holds NaN, infinite or too large numbers")
    return x


def _flat(sample: Any, shape: tuple[int, ...], where: str) -> list[Any]:
    nested = isinstance(sample, list) and bool(sample) and isinstance(sample[0], list)
    level = [sample]
    for length in shape if nested else (math.prod(shape),):
        if any(not isinstance(part, list) or len(part) != length for part in level):
            raise RequestError(f"{where} is not of the shape {_text(shape)} that the model takes, nor that in one list")
        level = list(chain.from_iterable(level))
    if not set(map(type, level)) <= {int, float, bool}:
        raise RequestError(f"{where} holds something that is not a number")
    return level


def _concat(chunks: list[Array]) -> Array:
    if not chunks:
        raise RequestError("inputs are empty; give at least one")
    return np.concatenate(chunks)


def _text(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape)) or "()"


def _labels(given: Sequence[Any]) -> Array:
    """Labels as an array; all of one type, because numpy would convert numbers to texts."""
    kinds: set[type] = set(map(type, given))
    if len(kinds) != 1 or not kinds <= {bool, int, float, str}:
        raise RequestError("labels: give all of them as integers, or all as texts (or all of one other plain type)")
    if not all(map(_usable, given)):
        raise RequestError(f"labels: {UNUSABLE}")
    if kinds == {str} and 4 * len(given) * max(map(len, given)) > MAX_LABELS_BYTES:
        raise RequestError("labels: the texts are too long in total; make them shorter")
    return np.array(given)


def _usable(label: Label) -> bool:
    if isinstance(label, str):
        return len(label) <= MAX_LABEL and not any("\ud800" <= letter <= "\udfff" or letter == "\0" for letter in label)
    return abs(label) < 2**63  # neither NaN nor infinite


def _npz(body: bytes, target: Target, most: int) -> tuple[Array, list[Any]]:
    """The inputs x and the labels y of an archive that is not too large when unpacked."""
    with arrays.report_damage("the body", arrays.how_to_save("xy")), zipfile.ZipFile(BytesIO(body)) as archive:
        members = {info.filename: info for info in archive.infolist()}
        if not {"x.npy", "y.npy"} <= set(members):
            raise RequestError(f"the body lacks x or y: {arrays.how_to_save('xy')}")
        x, y = members["x.npy"], members["y.npy"]
        if x.file_size + y.file_size > most:
            raise RequestError(f"x and y are larger than {most / 1024**2:g} MiB when unpacked; send fewer samples", 413)
        if not {x.compress_type, y.compress_type} <= {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
            raise RequestError(f"the body uses an unusual compression: {arrays.how_to_save('xy')}")
        with archive.open(x) as stream:
            inputs = _concat(list(arrays.read_npy(stream, "x", target.shape_in)))
        return inputs, _given_labels(archive.read(y))


def _given_labels(content: bytes) -> list[Any]:
    stream = BytesIO(content)
    header = arrays.read_header(stream)
    arrays.check_no_objects("y", header)
    arrays.check_length("y", header, len(content) - stream.tell(), arrays.how_to_save("xy"))
    if header.dtype.kind not in "biufU" or not 0 < header.dtype.itemsize <= 4 * MAX_LABEL or len(header.shape) != 1:
        found = f"{header.dtype} in the shape {_text(header.shape)}"
        raise RequestError(f"y holds {found}; give one label for each row of x")
    labels = to_native(np.frombuffer(stream.read(), header.dtype))
    if header.dtype.kind == "U" and (labels.view(np.uint32) > sys.maxunicode).any():  # numpy does not check
        raise RequestError("y holds characters that are not Unicode")
    return list(labels.tolist())
