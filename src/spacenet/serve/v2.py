"""The Open Inference Protocol, version 2: the addresses that clients of KServe, Seldon and Triton know.

https://github.com/kserve/open-inference-protocol, with Triton's extension for binary tensor data. A model's version is
the number of tasks that it has learned. Inputs and outputs have the names that they have in exported ONNX files.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Any

import numpy as np
from fastapi import FastAPI, Request, Response

from spacenet.data import arrays
from spacenet.data.preprocessing import Array
from spacenet.encoders.inputs import TextInput
from spacenet.errors import SettingsError
from spacenet.model.labels import Label
from spacenet.model.predictions import Measured
from spacenet.model.unknown import unknown_label
from spacenet.model.watching import DEFAULT_RATE
from spacenet.serve.images import MAX_IMAGES, decode_files
from spacenet.serve.messages import RequestError
from spacenet.serve.models import Hosted
from spacenet.serve.options import AnswerOptions
from spacenet.serve.predicting import MAX_PREDICTIONS, MAX_SMALL, complete_options, measure_all, measure_together
from spacenet.serve.reading import MAX_SMALL_BODY, parse_json, read_texts
from spacenet.serve.routes import NAME_PARAMETER, Context, add_route, describe_body, respond
from spacenet.serve.store import Served
from spacenet.serve.tensors import (
    BYTES,
    InferenceRequest,
    OutputName,
    Values,
    read_tensor,
    split_binary,
    wants_binary,
    write_tensor,
)
from spacenet.serve.v2_messages import (
    InferenceResponse,
    Live,
    ModelMetadata,
    ModelReady,
    Ready,
    ServerMetadata,
    Tensor,
)

INPUT, LABEL, PROBABILITIES, UNKNOWN, TYPICALITY = "input", "label", "probabilities", "unknown", "typicality"
MAX_BINARY = 4_000_000
"""Values of a response as bytes; as JSON they take more memory."""
LENGTH = "inference-header-content-length"
VERSION_PARAMETER = {"name": "version", "in": "path", "required": True, "schema": {"type": "string"}}


@dataclass(frozen=True)
class Inference:
    """A request that was read: samples, what is wanted of them, and how it is sent. All of an answer is one model's."""

    hosted: Hosted
    served: Served
    id: str | None
    x: Array
    wanted: Sequence[OutputName]
    binary: Sequence[bool]
    options: AnswerOptions
    names_unknown: bool
    """Whether the label of unknown samples says so."""


class OpenInference:
    """The endpoints."""

    def __init__(self, context: Context) -> None:
        self.context = context

    async def server(self, request: Request) -> Response:
        return respond(ServerMetadata())

    async def live(self, request: Request) -> Response:
        return respond(Live())

    async def ready(self, request: Request) -> Response:
        ready = all(is_ready(each.store.current) for each in self.context.models)
        return respond(Ready(ready=ready), 200 if ready else 503)

    async def model_ready(self, request: Request) -> Response:
        hosted, served = self._model(request)
        ready = is_ready(served)
        return respond(ModelReady(name=hosted.name, ready=ready), 200 if ready else 503)

    async def model(self, request: Request) -> Response:
        hosted, served = self._model(request)
        inputs, outputs = _inputs(served), _outputs(served)
        return respond(ModelMetadata(name=hosted.name, versions=[version_of(served)], inputs=inputs, outputs=outputs))

    async def infer(self, request: Request) -> Response:
        self._model(request)  # before the body is received
        if request.headers.get("content-encoding", "identity") != "identity":
            raise RequestError("compressed bodies are not taken; send it without Content-Encoding", 415)
        async with self.context.bodies.receive(request) as body:
            if (small := self._read_small(request, body)) is None:
                return await self.context.in_thread(self._infer, request, body)
            found = await measure_together(self.context, small.hosted, small.served, small.x, small.options)
            return _answer(small, [_values(found, small)])

    def _infer(self, request: Request, body: bytes) -> Response:
        hosted, served = self._model(request)
        it = _read(*_split(body, request), hosted, served)
        return _answer(it, [_values(each, it) for each in measure_all(self.context, hosted, served, it.x, it.options)])

    def _read_small(self, request: Request, body: bytes) -> Inference | None:
        """A request with a few numbers; None if reading or answering it may take a while."""
        hosted, served = self._model(request)
        if len(body) > MAX_SMALL_BODY or served.encoder is not None or not served.classes:
            return None
        asked, content = _split(body, request)
        if any(each.datatype == BYTES for each in asked.inputs):
            return None
        found = _read(asked, content, hosted, served)
        return found if len(found.x) * len(served.classes) <= MAX_SMALL else None

    def _model(self, request: Request) -> tuple[Hosted, Served]:
        """The model that a request is about. Raises `RequestError` for another version than it has."""
        hosted = self.context.hosted(request)
        served, version = hosted.store.current, request.path_params.get("version")
        if version is not None and version != version_of(served):
            reason = f"the model {hosted.name} has the version {version_of(served)}, which counts the tasks learned"
            raise RequestError(f"{reason}, not {version[:40]!r}", 404)
        return hosted, served


def add_v2_routes(app: FastAPI, context: Context) -> None:
    """Add GET /v2, /v2/health/live, /v2/health/ready, and what there is for each model."""
    it = OpenInference(context)
    add_route(app, "GET /v2", it.server, ServerMetadata, "Open Inference Protocol: the server")
    add_route(app, "GET /v2/health/live", it.live, Live, "Whether the server answers")
    add_route(app, "GET /v2/health/ready", it.ready, Ready, "Whether all models can be used")
    words = "Tensors in JSON, then their bytes; the header Inference-Header-Content-Length is the length of the JSON."
    body = describe_body(InferenceRequest, {"application/octet-stream": words})
    for path, more in (("", []), ("/versions/{version}", [VERSION_PARAMETER])):
        at, named = "/v2/models/{name}" + path, {"parameters": [NAME_PARAMETER, *more]}
        add_route(app, f"GET {at}", it.model, ModelMetadata, "What a model takes and gives", named)
        add_route(app, f"GET {at}/ready", it.model_ready, ModelReady, "Whether a model can be used", named)
        add_route(app, f"POST {at}/infer", it.infer, InferenceResponse, "Predict", {**body, **named})


def is_ready(served: Served) -> bool:
    """Whether a model can predict: one that knows no class cannot."""
    return bool(served.classes)


def version_of(served: Served) -> str:
    """The number of tasks learned."""
    return str(len(served.model.tasks))


def _inputs(served: Served) -> list[Tensor]:
    encoder = served.encoder
    if encoder is not None and encoder.images is not None:
        return [Tensor(name=INPUT, datatype="UINT8", shape=[-1, 3, -1, -1])]
    if encoder is not None and isinstance(encoder.takes, TextInput):
        return [Tensor(name=INPUT, datatype=BYTES, shape=[-1])]
    return [Tensor(name=INPUT, datatype="FP32", shape=[-1, *served.model.input_shape])]


def _outputs(served: Served) -> list[Tensor]:
    found = [
        Tensor(name=LABEL, datatype=_label_type(served.classes), shape=[-1]),
        Tensor(name=PROBABILITIES, datatype="FP32", shape=[-1, len(served.classes)]),
    ]
    if served.tells_unknown:
        found += [Tensor(name=UNKNOWN, datatype="BOOL", shape=[-1])]
        found += [Tensor(name=TYPICALITY, datatype="FP32", shape=[-1])]
    return found


def _label_type(classes: Sequence[Label]) -> str:
    if all(type(label) is int and abs(label) < 2**63 for label in classes):
        return "INT64"
    return "FP64" if all(type(label) is float for label in classes) else BYTES


def _split(body: bytes, request: Request) -> tuple[InferenceRequest, bytes]:
    """The JSON of a request, and the bytes after it."""
    length = request.headers.get(LENGTH)
    if length is None:
        return parse_json(body, InferenceRequest), b""
    if not (length.isascii() and length.isdigit() and len(length) < 18 and int(length) <= len(body)):
        raise RequestError(f"Inference-Header-Content-Length: {length[:20]!r} is no length of a part of the body", 400)
    return parse_json(body[: int(length)], InferenceRequest), body[int(length) :]


def _read(asked: InferenceRequest, content: bytes, hosted: Hosted, served: Served) -> Inference:
    if [each.name for each in asked.inputs] != [INPUT]:
        given = ", ".join(repr(each.name[:40]) for each in asked.inputs[:5]) or "none"
        raise RequestError(f"the model {hosted.name} takes one input, {INPUT!r}; the request has {given}", 400)
    (binary,) = split_binary(asked.inputs, content)
    parameters, wanted = asked.parameters or {}, _wanted(asked, served)
    options = complete_options(hosted, served, AnswerOptions().with_rates(parameters.get(UNKNOWN), None))
    names_unknown = options.unknown is not None
    if not names_unknown and {UNKNOWN, TYPICALITY} & {each.name for each in wanted}:
        options = replace(options, unknown=DEFAULT_RATE)
    x = _samples(read_tensor(asked.inputs[0], binary), served)
    as_bytes = [wants_binary(each, parameters) for each in wanted]
    _check_size(len(x), wanted, as_bytes, served)
    return Inference(hosted, served, asked.id, x, wanted, as_bytes, options, names_unknown)


def _wanted(asked: InferenceRequest, served: Served) -> list[OutputName]:
    """The outputs that a request asks for, by default all. Each may come once: more would make large answers."""
    known = [each.name for each in _outputs(served)]
    wanted = asked.outputs or [OutputName(name=name) for name in known]
    for place, each in enumerate(wanted[: len(known) + 1]):
        if each.name not in known:
            raise RequestError(f"unknown output {each.name[:100]!r}; choose from {', '.join(known)}", 400)
        if each.name in [other.name for other in wanted[:place]]:
            raise RequestError(f"the output {each.name!r} is asked for twice", 400)
        if "classification" in (each.parameters or {}):
            raise RequestError("the classification extension is not there; ask for the output 'label'", 400)
    return wanted


def _samples(values: Values, served: Served) -> Array:
    """The samples in a tensor: numbers as in an array, texts, or image files."""
    if isinstance(values, list):
        if served.encoder is not None and isinstance(served.encoder.takes, TextInput):
            return read_texts([text.decode("utf-8", "replace") for text in values])
        return decode_files([(f"{INPUT}[{row}]", file) for row, file in enumerate(values)], served.target, MAX_IMAGES)
    stream = BytesIO()
    np.save(stream, values)
    stream.seek(0)
    found = list(arrays.read_npy(stream, f"the input {INPUT!r}", served.target.shape_in))  # with all of its checks
    return np.concatenate(found)


def _check_size(count: int, wanted: Sequence[OutputName], binary: Sequence[bool], served: Served) -> None:
    for each, as_bytes in zip(wanted, binary, strict=True):
        values = count * (len(served.classes) if each.name == PROBABILITIES else 1)
        most = MAX_BINARY if as_bytes else MAX_PREDICTIONS
        if values > most:
            raise RequestError(f"{each.name} would have {values:,} values, more than {most:,}; send fewer samples", 413)


def _values(found: Measured, it: Inference) -> list[Array]:
    """The values of each output that is wanted, for some of the samples."""
    unknown = found.is_unknown(it.options.unknown)
    made: list[Array] = []
    for each in it.wanted:
        if each.name == PROBABILITIES:
            made.append(found.probabilities.astype(np.float32))
        elif each.name == UNKNOWN:
            made.append(unknown)
        elif each.name == TYPICALITY:
            made.append(np.zeros(len(found)) if found.typicality is None else found.typicality)
        else:
            made.append(_labels(found, unknown if it.names_unknown else None, it.served.classes))
    return made


def _labels(found: Measured, unknown: Array | None, classes: Sequence[Label]) -> Array:
    """The label of each sample: a number, or a text."""
    texts = _label_type(classes) == BYTES
    values = np.array([str(label) for label in classes] if texts else classes, dtype=object)
    labels: Array = values[found.probabilities.argmax(1)]
    if unknown is not None and unknown.any():
        try:
            labels[unknown] = unknown_label(values.tolist())
        except SettingsError as error:
            raise RequestError(f"{error.message}; ask for the output {UNKNOWN!r} instead") from error
    return labels


def _answer(it: Inference, parts: Sequence[Sequence[Array]]) -> Response:
    """The response with the values of each output, for one part of the samples after the other."""
    types = {each.name: each.datatype for each in _outputs(it.served)}
    tensors = [
        write_tensor(each.name, types[each.name], np.concatenate(values), as_bytes)
        for each, as_bytes, values in zip(it.wanted, it.binary, zip(*parts, strict=True), strict=True)
    ]
    answer: dict[str, Any] = {"model_name": it.hosted.name, "model_version": version_of(it.served)}
    answer |= {} if it.id is None else {"id": it.id}
    answer["outputs"] = [made for made, _ in tensors]
    if not any(it.binary):
        return respond(answer)
    text = json.dumps(answer, separators=(",", ":")).encode()
    headers = {LENGTH: str(len(text))}
    content = b"".join([text, *(each for _, each in tensors)])
    return Response(content, media_type="application/octet-stream", headers=headers)
