"""A model in a file that is used without spacenet, as ONNX or for torch alone: its packed network, and its encoder.

Raw samples go in, as 32-bit numbers, or prepared images as bytes where there is an encoder; probabilities come out, a
column for each of the model's classes. What was written is loaded and compared with the model before the file gets its
name.
"""

import io
import json
import logging
import math
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from spacenet import __version__
from spacenet.data.preprocessing import Array, Normalization, signed_root
from spacenet.encoders.exported import OnnxNetwork
from spacenet.errors import SpacenetError
from spacenet.model.exported_part import ROUNDING, HeadPart, PixelPart, choose_part
from spacenet.model.labels import Label
from spacenet.model.model import Model
from spacenet.model.onnx_graphs import opset_of, put_before, read_graph
from spacenet.registry import unknown
from spacenet.space.pack import Pack, packed_units
from spacenet.utils.extras import require_extra
from spacenet.utils.files import atomic_write

MAX_DIFFERENCE = 1e-4
"""How much a probability of the file may differ from the model's where scores are small."""
OPSET = 18
INPUT, OUTPUT, METADATA = "input", "probabilities", "spacenet.json"
Metadata = dict[str, str]
"""What the file holds besides the network: classes, input_shape, tasks, spacenet, and with an encoder encoder and
images; each as a JSON text."""
Loaded = tuple[Callable[[Array], Array], Metadata]
"""The function that a file computes, and its metadata."""


class PackedNetwork(nn.Module):
    """Raw samples (batch, *input_shape) to probabilities (batch, classes); unused units are not in it.

    What a method computes beside the network, such as densities of classes, is part of it.
    """

    mean: Tensor
    std: Tensor
    together: Tensor | None  # adds up the outputs of each class; None where each class has one

    def __init__(self, predictor: Pack, normalization: Normalization, columns: Tensor) -> None:
        """`columns` says for each output of the predictor which class it stands for."""
        super().__init__()
        self.function, self.scale, self.clip = predictor.forward, normalization.scale, normalization.clip
        self.root = normalization.root
        self.register_buffer("mean", normalization.mean.clone())
        self.register_buffer("std", normalization.std.clone())
        self.names = {name: f"value/{name}".replace(".", "/") for name in predictor.params}  # torch allows no dots
        for name, value in predictor.params.items():
            self.register_buffer(self.names[name], value.to_dense() if value.layout == torch.sparse_csr else value)
        ones = nn.functional.one_hot(columns).float()
        self.register_buffer("together", None if ones.shape[0] == ones.shape[1] else ones)

    def forward(self, x: Tensor) -> Tensor:
        values = {name: getattr(self, held) for name, held in self.names.items()}
        scaled = signed_root(x * self.scale) if self.root else x * self.scale
        inputs = (scaled - self.mean) / self.std
        if math.isfinite(self.clip):
            inputs = inputs.clamp(-self.clip, self.clip)
        each = self.function(values, inputs).softmax(1).float()
        return each if self.together is None else each @ self.together


@dataclass(frozen=True)
class PackedLayer:
    """How many of a layer's units the file holds."""

    name: str
    packed: int
    units: int


@dataclass(frozen=True)
class Exported:
    """What was written."""

    path: Path
    format: str
    bytes: int
    max_difference: float  # of a probability from the model's, over all inputs of the check
    layers: tuple[PackedLayer, ...]
    classes: tuple[Label, ...]


@dataclass
class Format:
    """A kind of file: how it is written, and how it is used."""

    suffix: str
    libraries: tuple[str, ...]
    """Those that it needs besides torch."""
    content: Callable[[HeadPart, Metadata], bytes]
    load: Callable[[Path], Loaded]


def _program(part: HeadPart, example: Tensor) -> ExportedProgram:
    return torch.export.export(part.network, (example,), dynamic_shapes=({0: Dim("batch")},))


def _torch_content(part: HeadPart, metadata: Metadata) -> bytes:
    program = _program(part, part.example())
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)  # names files of the machine that it was written on
    file = io.BytesIO()
    torch.export.save(program, file, extra_files={METADATA: json.dumps(metadata)})
    return file.getvalue()


def _load_torch(path: Path) -> Loaded:
    metadata = {METADATA: ""}
    with path.open("rb") as file:
        module = torch.export.load(file, extra_files=metadata).module()
    return lambda x: np.asarray(module(torch.from_numpy(x)).numpy()), json.loads(metadata[METADATA])


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
    example = HeadPart.example(HeadPart(part.model, part.network)) if merges else part.example()
    options: dict[str, Any] = {"dynamo": True, "opset_version": opset, "verbose": False}
    program = _program(part, example)
    written: Any = torch.onnx.export(program, input_names=[INPUT], output_names=[OUTPUT], **options)
    head = written.model_proto  # a new one with each access
    return put_before(before, part.images, head) if isinstance(part, PixelPart) and merges else head


def _load_onnx(path: Path) -> Loaded:
    runtime = require_extra("to onnx", "export", "onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = torch.get_num_threads(), 3
    session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return lambda x: session.run([OUTPUT], {INPUT: x})[0], dict(session.get_modelmeta().custom_metadata_map)


FORMATS = {
    "onnx": Format(".onnx", ("onnx", "onnxscript", "onnxruntime"), _onnx_content, _load_onnx),
    "torch": Format(".pt2", (), _torch_content, _load_torch),
}


def export_model(model: Model, path: Path, to: str, without_encoder: bool = False) -> Exported:
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

    Returns
    -------
    Exported
    """
    if to not in FORMATS:
        raise unknown("format", to, list(FORMATS), setting="to")
    form = FORMATS[to]
    for library in form.libraries:
        require_extra(f"to {to}", "export", library)
    normalization = model.fitted_normalization
    head = PackedNetwork(model.method.predictor, normalization, model.columns()).eval()
    part = choose_part(model, head, to, without_encoder)
    facts = {"classes": model.classes, "tasks": len(model.tasks), "spacenet": __version__, **part.facts}
    metadata = {name: json.dumps(value) for name, value in facts.items()}
    try:
        with atomic_write(path) as beside, warnings.catch_warnings(action="ignore"), ExitStack() as stack:
            stack.callback(logging.disable, logging.root.manager.disable)
            logging.disable(logging.WARNING)  # exporters say much
            content = form.content(part, metadata)
            beside.write_bytes(content)
            difference = _check(part, form, beside, metadata)
    except SpacenetError:
        raise
    except Exception as error:  # exporters and runtimes raise errors of many kinds
        reason = f"{type(error).__name__}: {error}".partition("\n")[0]
        what = f"the network cannot be exported as {to} with torch {torch.__version__}"
        raise SpacenetError(f"{what} ({reason})") from error
    ledger, units = model.method.ledger, packed_units(model.method.ledger)
    names = [layer.name for layer in ledger.blueprint.hidden]
    layers = tuple(PackedLayer(name, len(units[name]), ledger.size(name)) for name in names)
    return Exported(path, to, len(content), difference, layers, tuple(model.classes))


def _check(part: HeadPart, form: Format, path: Path, metadata: Metadata) -> float:
    """The largest difference between the file's probabilities and the model's."""
    predict, read = form.load(path)
    if read != metadata:
        raise SpacenetError("the labels are missing in the written file; nothing was exported")
    worst = 0.0
    for x in part.batches():
        features = part.features(x)
        found, expected = predict(x), part.model.predict_proba(features)
        if found.shape != expected.shape:
            raise SpacenetError(f"the written file returns the shape {found.shape} instead of {expected.shape}")
        difference = float(np.abs(found - expected).max())
        allowed = max(MAX_DIFFERENCE, ROUNDING * float(part.model.scores(features).abs().max()))
        if difference > allowed:
            allowed = max(allowed, part.rounding_effect(features, expected))
        if not difference <= allowed:  # also where it is NaN
            what = f"probabilities differ by up to {difference:.2g} (at most {allowed:.2g} is rounding)"
            raise SpacenetError(f"the written file computes something else: {what}; nothing was exported")
        worst = max(worst, difference)
    return worst
