"""From the body of a request to arrays, checking everything: it may be malicious."""

import math
import re
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from itertools import chain
from struct import Struct
from struct import error as StructError
from typing import Any, TypeVar

import numpy as np
from pydantic import BaseModel, ValidationError

from spacenet.data import arrays
from spacenet.data.checks import find_nonfinite, to_native
from spacenet.data.parts import Target
from spacenet.data.preprocessing import Array
from spacenet.encoders.inputs import TextInput
from spacenet.model.labels import Label
from spacenet.serve.images import MAX_IMAGES, MAX_IMAGES_TO_LEARN, File, decode_files, read_base64
from spacenet.serve.messages import EditRequest, LearnRequest, PredictRequest, RequestError
from spacenet.serve.multipart import read_parts
from spacenet.serve.options import AnswerOptions
from spacenet.serve.store import Served

JSON = ("application/json",)
FORM = ("multipart/form-data",)
IMAGES = ("image/png", "image/jpeg", "image/webp", "image/bmp")
NPY = ("application/octet-stream", "application/x-npy")
NPZ = ("application/octet-stream", "application/x-npz", "application/zip")
MAX_SMALL_BODY = 64 * 1024
MAX_LABEL = 100  # characters of a label
MAX_TEXT = 100_000  # characters of a text to encode
UNUSABLE = f"a number that is not finite or too large, or a text of more than {MAX_LABEL} letters"
MAX_LABELS_BYTES = 64 * 1024**2
"""Numpy gives every text of an array the space of the longest."""
WHOLE = re.compile(r"-?[0-9]{1,18}")
Form = TypeVar("Form", bound=BaseModel)


@dataclass(frozen=True)
class Content:
    """How a body is to be read."""

    kind: str
    """Its content type, without parameters."""
    boundary: bytes = b""
    """What separates the parts of a form."""
    resize: bool = False
    """Whether images of another size are resized to the model's."""

    def target(self, served: Served) -> Target:
        """What the samples are read as."""
        return replace(served.target, resize=self.resize)


def read_inputs(body: bytes, content: Content, options: AnswerOptions, served: Served) -> tuple[Array, AnswerOptions]:
    """A request to /predict: inputs, and what it wants to know of them."""
    target = content.target(served)
    if content.kind in NPY:
        return _concat(list(arrays.read_npy(BytesIO(body), "the body", target.shape_in))), options
    if content.kind in IMAGES:
        return decode_files([("the image", body)], target, MAX_IMAGES), options
    if content.kind in FORM:
        return decode_files([each for _, each in _read_form(body, content)], target, MAX_IMAGES), options
    request = _json(body, content.kind, PredictRequest, (*FORM, *NPY, *IMAGES))
    return _samples(request, target, MAX_IMAGES), options.of_body(request)


def read_small_inputs(
    body: bytes, content: Content, options: AnswerOptions, served: Served
) -> tuple[Array, AnswerOptions] | None:
    """The same for small bodies of numbers, which are read in less time than a thread needs to begin; else None."""
    if len(body) > MAX_SMALL_BODY:
        return None
    if content.kind in NPY and served.encoder is None:
        return read_inputs(body, content, options, served)
    if content.kind not in JSON:
        return None
    request = _json(body, content.kind, PredictRequest, ())
    if not request.inputs or request.images is not None or isinstance(request.inputs[0], str):
        return None
    return _nested(request.inputs, served.model.input_shape), options.of_body(request)


def read_task(body: bytes, content: Content, served: Served, most: int) -> tuple[Array, Array]:
    """A request to /learn: inputs and labels. An archive has at most so many bytes when unpacked."""
    target = content.target(served)
    if content.kind in NPZ:
        inputs, given = _npz(body, target, most)
    elif content.kind in FORM:
        fields = _read_form(body, content)
        inputs = decode_files([each for _, each in fields], target, MAX_IMAGES_TO_LEARN)
        given = _labels_of_names([name for name, _ in fields], served.classes)
    else:
        request = _json(body, content.kind, LearnRequest, (*FORM, *NPZ))
        inputs, given = _samples(request, target, MAX_IMAGES_TO_LEARN), request.labels
    if len(given) != len(inputs):
        raise RequestError(f"there are {len(inputs)} inputs and {len(given)} labels; give one label for each input")
    return inputs, _labels(given)


def read_edit(body: bytes, content: Content) -> EditRequest:
    """A request to /edit."""
    request = _json(body, content.kind, EditRequest, ())
    given = (request.label, request.new, request.into, *(request.labels or ()))
    if not all(_usable(label) for label in given if label is not None):
        raise RequestError(f"labels: {UNUSABLE}")
    return request


def _read_form(body: bytes, content: Content) -> list[tuple[str, File]]:
    """The image files of a form, each with the name of its field."""
    parts = read_parts(body, content.boundary)
    for part in parts:
        if part.filename is None:
            reason = f"the field {part.name[:100]!r} of the form is no file; options belong into the address: ?top=3"
            raise RequestError(reason)
    return [(part.name, (part.where, part.content)) for part in parts]


def _labels_of_names(names: Sequence[str], classes: Sequence[Label]) -> list[Any]:
    """Names of fields as labels: as integers, if those of the model are and all names can be read so."""
    numbers = bool(classes) and all(type(label) is int for label in classes)
    return [int(name) for name in names] if numbers and all(map(WHOLE.fullmatch, names)) else list(names)


def _samples(request: PredictRequest | LearnRequest, target: Target, most: int) -> Array:
    """The inputs of a JSON body, or its images."""
    if (request.inputs is None) == (request.images is None):
        raise RequestError("give either inputs or images")
    if request.images is not None:
        return decode_files(read_base64(request.images), target, most)
    inputs = request.inputs or []
    takes_texts = target.encoder is not None and isinstance(target.encoder.takes, TextInput)
    if takes_texts and inputs and isinstance(inputs[0], str):
        return read_texts(inputs)
    return _nested(inputs, target.shape)


def read_texts(texts: Sequence[Any]) -> Array:
    """Texts as an array. They may be long, but not so long that numpy would need much more space than they do."""
    if not texts or any(not isinstance(text, str) or len(text) > MAX_TEXT for text in texts):
        raise RequestError(f"inputs: give texts of at most {MAX_TEXT:,} characters, or features")
    if 4 * len(texts) * max(map(len, texts)) > MAX_LABELS_BYTES:
        raise RequestError("inputs: the texts are too long in total; send fewer at a time", 413)
    return np.array(texts)


def _json(body: bytes, kind: str, form: type[Form], others: Sequence[str]) -> Form:
    if kind not in JSON:
        raise RequestError(f"content type {kind or '(none)'}; send one of {', '.join((*JSON, *others))}", 415)
    return parse_json(body, form)


def parse_json(body: bytes, form: type[Form]) -> Form:
    """A body of JSON in a form. Raises `RequestError` for anything else."""
    try:
        return form.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))[:200]
        status = 400 if first["type"] == "json_invalid" else 422
        raise RequestError(f"{where}: {first['msg']}" if where else first["msg"], status) from error


def _nested(inputs: Sequence[Any], shape: tuple[int, ...]) -> Array:
    """Lists of numbers as an array. Checked first, because numpy would convert texts to numbers."""
    if not inputs:
        raise RequestError("inputs is empty; give at least one")
    packing = Struct(f"={math.prod(shape)}d")  # takes numbers only, while numpy would convert texts
    flat = bytearray(len(inputs) * packing.size)
    for row, sample in enumerate(inputs):
        values = _flat(sample, shape, f"inputs[{row}]")
        try:
            packing.pack_into(flat, row * packing.size, *values)
        except StructError as error:
            numbers = set(map(type, values)) <= {int, float, bool}
            what = "a number that is too large" if numbers else "something that is not a number"
            raise RequestError(f"inputs[{row}] holds {what}") from error
    with np.errstate(over="ignore"):
        x = np.frombuffer(flat).reshape(len(inputs), *shape).astype(np.float32)  # what a network computes with
    for row in find_nonfinite(x):
        raise RequestError(f"inputs[{row}] holds NaN, infinite or too large numbers")
    return x


def _flat(sample: Any, shape: tuple[int, ...], where: str) -> list[Any]:
    """The values of a sample; not yet whether they are numbers."""
    nested = isinstance(sample, list) and bool(sample) and isinstance(sample[0], list)
    level = [sample]
    for length in shape if nested else (math.prod(shape),):
        if any(not isinstance(part, list) or len(part) != length for part in level):
            raise RequestError(f"{where} is not of the shape {_text(shape)} that the model takes, nor that in one list")
        level = level[0] if len(level) == 1 else list(chain.from_iterable(level))
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
