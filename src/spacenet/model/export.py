"""A model in a file that is used without spacenet, as ONNX or for torch alone: its packed network, and its encoder.

Raw samples go in, as 32-bit numbers, or prepared images as bytes where there is an encoder; probabilities come out, a
column for each of the model's classes, and if wanted how typical each sample is and whether it is unknown. What was
written is loaded and compared with the model before the file gets its name.
"""

import json
import logging
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch.export import Dim, ExportedProgram

from spacenet import __version__
from spacenet.data.preprocessing import Array
from spacenet.encoders.exported import OnnxNetwork, write_program
from spacenet.errors import DataError, SettingsError, SpacenetError
from spacenet.model.exported_part import ROUNDING, HeadPart, PixelPart, choose_part
from spacenet.model.labels import Label
from spacenet.model.model import Model
from spacenet.model.onnx_graphs import opset_of, put_before, read_graph
from spacenet.model.onnx_weights import quantize_weights
from spacenet.model.packed_network import PackedNetwork
from spacenet.model.unknown import check_rate
from spacenet.registry import unknown as unknown_name
from spacenet.utils.extras import require_extra
from spacenet.utils.files import atomic_write

MAX_DIFFERENCE = 1e-4
"""How much a probability of the file may differ from the model's where scores are small."""
OPSET = 18
BATCH = 64
"""Samples that are predicted at a time to measure what quantization costs."""
INPUT, OUTPUTS, METADATA = "input", ("probabilities", "typicality", "unknown"), "spacenet.json"
"""The last two outputs are there only if they are wanted."""
Metadata = dict[str, str]
"""What the file holds besides the network: classes, input_shape, tasks, spacenet, with an encoder encoder and images,
and unknown, the false-alarm rate, where unknown samples are looked for; each as a JSON text."""
Loaded = tuple[Callable[[Array], dict[str, Array]], Metadata]
"""The function that a file computes, which returns the outputs by name, and its metadata."""


@dataclass(frozen=True)
class PackedLayer:
    """How many of a layer's units the file holds."""

    name: str
    packed: int
    units: int


@dataclass(frozen=True)
class Quantized:
    """What quantization saves and costs."""

    bytes_before: int
    max_difference: float  # of a probability from the model's, over all inputs of the check
    samples: int = 0  # on which the rest was measured: those with labels that the model knows
    accuracy_before: float | None = None  # in percent
    accuracy: float | None = None
    different_labels: int | None = None


@dataclass(frozen=True)
class Exported:
    """What was written."""

    path: Path
    format: str
    bytes: int
    max_difference: float  # of a probability from the model's, over all inputs of the check
    layers: tuple[PackedLayer, ...]
    classes: tuple[Label, ...]
    unknown: float | None = None  # the false-alarm rate, where unknown samples are looked for
    typicality_difference: float | None = None  # the same of a typicality
    quantized: Quantized | None = None


@dataclass
class Format:
    """A kind of file: how it is written, and how it is used."""

    suffix: str
    libraries: tuple[str, ...]
    """Those that it needs besides torch."""
    content: Callable[[HeadPart, Metadata], bytes]
    load: Callable[[Path], Loaded]
    quantize: Callable[[bytes], bytes] | None = None
    """The same content with weights in 8 bits."""


def _program(part: HeadPart, example: Tensor) -> ExportedProgram:
    return torch.export.export(part.network, (example,), dynamic_shapes=({0: Dim("batch")},))


def _torch_content(part: HeadPart, metadata: Metadata) -> bytes:
    return write_program(_program(part, part.example()), {METADATA: json.dumps(metadata)})


def _load_torch(path: Path) -> Loaded:
    metadata = {METADATA: ""}
    with path.open("rb") as file:
        module = torch.export.load(file, extra_files=metadata).module()

    def answer(x: Array) -> dict[str, Array]:
        found = module(torch.from_numpy(x))
        outputs = found if isinstance(found, tuple) else (found,)
        return {name: np.asarray(each.numpy()) for name, each in zip(OUTPUTS, outputs, strict=False)}

    return answer, json.loads(metadata[METADATA])


def _onnx_content(part: HeadPart, metadata: Metadata) -> bytes:
    model = _onnx_model(part)
    graph = model.graph
    for each in (*graph.input, *graph.output):
        each.type.tensor_type.shape.dim[0].dim_param = "batch"
    for named in (*graph.node, *graph.initializer, *graph.input, *graph.output):
        named.ClearField("metadata_props")  # names files of the machine that it was written on
    graph.ClearField("value_info")
    require_extra("to onnx", "export", "onnx").helper.set_model_props(model, metadata)
    return bytes(model.SerializeToString())


def _onnx_model(part: HeadPart) -> Any:
    """The graph of a part; an encoder that is an ONNX file is put before the head as it is."""
    encoder = part.encoder.network if isinstance(part, PixelPart) else None
    merges = isinstance(encoder, OnnxNetwork)
    before = read_graph(encoder.content, OPSET) if isinstance(encoder, OnnxNetwork) else None
    opset = max(OPSET, opset_of(before)) if merges else OPSET
    example = HeadPart.example(HeadPart(part.model, part.network, part.unknown)) if merges else part.example()
    options: dict[str, Any] = {"dynamo": True, "opset_version": opset, "verbose": False}
    program = _program(part, example)
    outputs = list(OUTPUTS if part.unknown is not None else OUTPUTS[:1])
    written: Any = torch.onnx.export(program, input_names=[INPUT], output_names=outputs, **options)
    head = written.model_proto  # a new one with each access
    return put_before(before, part.images, head) if isinstance(part, PixelPart) and merges else head


def _load_onnx(path: Path) -> Loaded:
    runtime = require_extra("to onnx", "export", "onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = torch.get_num_threads(), 3
    session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]

    def answer(x: Array) -> dict[str, Array]:
        return dict(zip(names, session.run(names, {INPUT: x}), strict=True))

    return answer, dict(session.get_modelmeta().custom_metadata_map)


FORMATS = {
    "onnx": Format(".onnx", ("onnx", "onnxscript", "onnxruntime"), _onnx_content, _load_onnx, quantize_weights),
    "torch": Format(".pt2", (), _torch_content, _load_torch),
}


def export_model(
    model: Model,
    path: Path,
    to: str,
    without_encoder: bool = False,
    unknown: float | None = None,
    quantize: Literal["int8"] | None = None,
    data: tuple[Array, Array] | None = None,
) -> Exported:
    """Write a model; if the file does not compute what the model computes, nothing is left behind.

    Parameters
    ----------
    model : Model
    path : Path
        The file to write.
    to : str
        "onnx" or "torch".
    without_encoder : bool
        Write only the part that takes features, of a model with an encoder.
    unknown : float, optional
        Look for samples that are like no class, at a threshold where this fraction of samples of known classes is
        called unknown too. The file then has two more outputs, typicality and unknown.
    quantize : {"int8"}, optional
        Write the weights of an ONNX file in 8 bits. The check takes place before that.
    data : tuple of arrays, optional
        Samples as the file takes them, and their labels, to measure what quantization costs.

    Returns
    -------
    Exported
    """
    if to not in FORMATS:
        raise unknown_name("format", to, list(FORMATS), setting="to")
    form = FORMATS[to]
    if quantize is not None and form.quantize is None:
        raise SettingsError(f"is for ONNX files, not for {to}", setting="quantize")
    for library in form.libraries:
        require_extra(f"to {to}", "export", library)
    normalization, rate = model.fitted_normalization, check_rate(unknown)
    method, encoded = model.method.without_places(), bool(model.config.preprocessing.encoder)
    predictor = method.predictor if rate is None else method.open_set_predictor
    head = PackedNetwork(predictor, normalization, model.columns(), rate, encoded=encoded).eval()
    part = choose_part(model, head, to, without_encoder, rate)
    facts = {"classes": model.classes, "tasks": len(model.tasks), "spacenet": __version__, **part.facts}
    metadata = {name: json.dumps(value) for name, value in facts.items()}
    try:
        with atomic_write(path) as beside, warnings.catch_warnings(action="ignore"), ExitStack() as stack:
            stack.callback(logging.disable, logging.root.manager.disable)
            logging.disable(logging.WARNING)  # exporters say much
            content = form.content(part, metadata)
            beside.write_bytes(content)
            differences, quantized = _check(part, form, beside, metadata), None
            if quantize is not None:
                quantized, content = _quantize(part, form, beside, content, data), beside.read_bytes()
    except SpacenetError:
        raise
    except Exception as error:  # exporters and runtimes raise errors of many kinds
        reason = f"{type(error).__name__}: {error}".partition("\n")[0]
        what = f"the network cannot be exported as {to} with torch {torch.__version__}"
        raise SpacenetError(f"{what} ({reason})") from error
    packed, usage = model.method.packed_sizes(), model.method.layer_usage()[:-1]
    layers = tuple(PackedLayer(layer.name, packed[layer.name], layer.units) for layer in usage)
    typicality = differences[1] if rate is not None else None
    return Exported(path, to, len(content), differences[0], layers, tuple(model.classes), rate, typicality, quantized)


def _quantize(part: HeadPart, form: Format, path: Path, content: bytes, data: tuple[Array, Array] | None) -> Quantized:
    """Replace the file by a quantized one."""
    assert form.quantize is not None
    before, _ = form.load(path)
    path.write_bytes(form.quantize(content))
    after, _ = form.load(path)
    model = part.model
    worst = max(
        float(np.abs(after(x)["probabilities"] - model.predict_proba(part.features(x))).max()) for x in part.batches()
    )
    if not worst <= 1:  # also where it is NaN
        raise SpacenetError("the quantized file does not compute probabilities; nothing was exported")
    if data is None:
        return Quantized(len(content), worst)
    x, right = _known_samples(part, *data)
    labels = [_answer(each, x) for each in (before, after)]
    accuracy_before, accuracy = (100 * float((each == right).mean()) for each in labels)
    different = int((labels[0] != labels[1]).sum())
    return Quantized(len(content), worst, len(x), accuracy_before, accuracy, different)


def _known_samples(part: HeadPart, x: Array, y: Array) -> tuple[Array, Array]:
    """The samples whose labels the model knows, as the file takes them, and the numbers of their classes."""
    place = {(type(label), label): number for number, label in enumerate(part.model.classes)}
    numbers = np.array([place.get((type(label), label), -1) for label in y.tolist()], dtype=int)
    if not (numbers >= 0).any():
        raise DataError("the data has no sample with a label that the model knows")
    return part.raw(x[numbers >= 0]), numbers[numbers >= 0]


def _answer(answer: Callable[[Array], dict[str, Array]], x: Array) -> Array:
    parts = (answer(x[first : first + BATCH]) for first in range(0, len(x), BATCH))
    return np.concatenate([each["probabilities"].argmax(1) for each in parts])


def _check(part: HeadPart, form: Format, path: Path, metadata: Metadata) -> list[float]:
    """The largest differences between the file's probabilities and the model's, and of typicalities if it has them."""
    answer, read = form.load(path)
    if read != metadata:
        raise SpacenetError("the labels are missing in the written file; nothing was exported")
    found = [(part.features(x), answer(x)) for x in part.batches()]
    worst = [max(_check_probabilities(part, features, outputs) for features, outputs in found)]
    if part.unknown is not None:
        found += [(part.features(x), answer(x)) for x in part.strange_batches()]
        worst.append(max(_check_typicality(part, features, outputs) for features, outputs in found))
    return worst


def _check_probabilities(part: HeadPart, features: Array, outputs: dict[str, Array]) -> float:
    model = part.model
    found, expected = outputs["probabilities"], model.predict_proba(features)
    if found.shape != expected.shape:
        raise SpacenetError(f"the written file returns the shape {found.shape} instead of {expected.shape}")
    difference = float(np.abs(found - expected).max())
    allowed = max(MAX_DIFFERENCE, ROUNDING * float(model.scores(features).abs().max()))
    if difference > allowed:
        allowed = max(allowed, part.rounding_effect(features, model.predict_proba))
    _compare("probabilities", difference, allowed)
    return difference


def _check_typicality(part: HeadPart, features: Array, outputs: dict[str, Array]) -> float:
    model = part.model
    found, expected = outputs["typicality"], model.typicality(features)
    difference, allowed = float(np.abs(found - expected).max()), MAX_DIFFERENCE
    if difference > allowed and not found[model.find_empty(features)].any():  # zeros are exact in all runtimes
        allowed = max(allowed, part.rounding_effect(features, model.typicality))
    _compare("typicalities", difference, allowed)
    clear = np.abs(expected - part.unknown) > 2 * allowed
    if (outputs["unknown"] != (expected < part.unknown))[clear].any():
        raise SpacenetError("the written file decides otherwise what is unknown; nothing was exported")
    return difference


def _compare(what: str, difference: float, allowed: float) -> None:
    if not difference <= allowed:  # also where it is NaN
        what = f"{what} differ by up to {difference:.2g} (at most {allowed:.2g} is rounding)"
        raise SpacenetError(f"the written file computes something else: {what}; nothing was exported")
