"""Encoders in files: networks that were exported as ONNX or by torch.export, from a path or from the file's bytes."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.export import ExportedProgram

from spacenet.encoders.archive import clean_archive
from spacenet.encoders.encoder import Encoder
from spacenet.encoders.inputs import ImageInput
from spacenet.encoders.networks import FrozenNetwork, count_features
from spacenet.errors import SettingsError
from spacenet.utils.extras import require_extra

FILES = (".onnx", ".pt2")
ONLY_NUMBERS = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"
"""An environment variable of torch."""


class OnnxNetwork:
    """An ONNX graph that onnxruntime computes."""

    def __init__(self, name: str, content: bytes) -> None:
        runtime = require_extra(name, "export", "onnxruntime")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = 1
        try:
            self.session = runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
            (self.given,) = self.session.get_inputs()
        except Exception as error:
            raise SettingsError(f"{name} is not an ONNX network with one input ({error})", setting="encoder") from error
        self.content = content

    def __call__(self, x: Tensor) -> Tensor:
        found = self.session.run(None, {self.given.name: x.cpu().numpy()})[0]
        return torch.from_numpy(np.asarray(found)).flatten(1)

    @property
    def size(self) -> int:
        """The side of the images that it takes."""
        side = self.given.shape[-1]
        return side if isinstance(side, int) else ImageInput.size


class ExportedNetwork(FrozenNetwork):
    """A program of torch.export."""

    def __init__(self, name: str, content: bytes) -> None:
        try:
            with _only_numbers():
                program = torch.export.load(BytesIO(clean_archive(content)))
            super().__init__(program.module().requires_grad_(False))
        except Exception as error:
            raise SettingsError(f"{name} cannot be read by torch.export ({error})", setting="encoder") from error
        inputs = program.example_inputs[0] if program.example_inputs else ()
        self.content, self.size = content, int(inputs[0].shape[-1]) if inputs else ImageInput.size


def write_program(program: ExportedProgram, notes: dict[str, str]) -> bytes:
    """The content of a .pt2 file, which `ExportedNetwork` reads; notes are texts by name."""
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)  # names files of the machine that it was written on
    file = BytesIO()
    torch.export.save(program, file, extra_files=notes)
    return file.getvalue()


def short_name(name: str) -> str:
    """An encoder's name without the folder that it lies in on this machine."""
    return Path(name).name if name.endswith(FILES) else name


def load_file(path: Path) -> Encoder:
    """An exported network. It takes (n, 3, size, size), normalized as is common for ImageNet; n must be free."""
    if not path.is_file():
        raise SettingsError(f"{path}: no such file", setting="encoder")
    content = path.read_bytes()
    return open_content(str(path), _with_data(path, content) if path.suffix == ".onnx" else content)


def open_content(name: str, content: bytes) -> Encoder:
    """The encoder in the bytes of a file with this name."""
    network = OnnxNetwork(name, content) if name.endswith(".onnx") else ExportedNetwork(name, content)
    images = ImageInput(network.size)
    checksum = hashlib.sha256(content).hexdigest()
    return Encoder(name, "", checksum, count_features(name, network, images), network, images)


def _with_data(path: Path, content: bytes) -> bytes:
    """An ONNX file together with the weights that it keeps in files beside it, if it does so.

    The library finds them only in the same folder. The SHA-256 of a graph alone would say nothing about its weights.
    """
    library = require_extra(str(path), "export", "onnx")
    try:
        if not has_data_beside(library.load_model_from_string(content).graph):
            return content
        return bytes(library.load(path).SerializeToString())
    except Exception as error:  # of protobuf and of the library
        raise SettingsError(f"{path} is not an ONNX network with one input ({error})", setting="encoder") from error


def has_data_beside(graph: Any) -> bool:
    """Whether a graph, or one within it, takes numbers from other files."""
    tensors = [*graph.initializer, *(t for s in graph.sparse_initializer for t in (s.values, s.indices))]
    for attribute in (attribute for node in graph.node for attribute in node.attribute):
        tensors += [attribute.t, *attribute.tensors]
        if any(has_data_beside(inner) for inner in (attribute.g, *attribute.graphs) if inner.node or inner.initializer):
            return True
    return any(tensor.external_data for tensor in tensors)


@contextmanager
def _only_numbers() -> Iterator[None]:
    """Let torch read tensors only: parts of an exported network may be pickles, which can run any program."""
    before = os.environ.get(ONLY_NUMBERS)
    os.environ[ONLY_NUMBERS] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[ONLY_NUMBERS]
        else:
            os.environ[ONLY_NUMBERS] = before
