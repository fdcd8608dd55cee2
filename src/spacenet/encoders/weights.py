"""The weights of an encoder as arrays for a model file, and the encoder that they make again.

An encoder from a file travels whole, as the file's bytes; of others their tensors do, and the network's code has to be
installed. What comes from a model file is not trusted: it must have the SHA-256 that the encoder is known by.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn

from spacenet.encoders.efficientnet import LITES, load_lite, published_checksum
from spacenet.encoders.encoder import Encoder
from spacenet.encoders.exported import FILES, ExportedNetwork, OnnxNetwork, has_data_beside, open_content
from spacenet.encoders.inputs import Array
from spacenet.encoders.libraries import load_timm, load_torchvision
from spacenet.encoders.loading import OWN, PACKAGED, load_encoder
from spacenet.encoders.networks import FrozenNetwork, fill, hash_module
from spacenet.errors import SettingsError
from spacenet.utils.extras import require_extra

EncoderWeights = Mapping[str, Array]
"""Tensors by their names in the network; or one, `FILE`, with the bytes of a file."""
FILE = "file"
TENSOR = "tensors/"
KINDS = "fiub"
"""Of numpy's types."""


def pack_encoder(encoder: Encoder) -> EncoderWeights:
    """The weights of an encoder. Raises `SettingsError` for one that could not be made again from them."""
    network = encoder.network
    if encoder.name in PACKAGED and encoder.name not in LITES:
        raise _not_included(encoder, "they come with its package, which has to be installed")
    if isinstance(network, OnnxNetwork | ExportedNetwork):
        return {FILE: np.frombuffer(network.content, np.uint8)}
    inner = network.inner if isinstance(network, FrozenNetwork) else network
    if not isinstance(inner, nn.Module):
        raise _not_included(encoder, "it is a function, whose weights are not known")
    if encoder.checksum not in _checksums(inner):
        raise _not_included(encoder, "its checksum is not that of a module's weights; pass the torch module itself")
    return {TENSOR + name: _to_array(encoder, tensor) for name, tensor in inner.state_dict().items()}


def check_weights(weights: EncoderWeights, name: str, checksum: str | None) -> None:
    """Raise `ValueError` for arrays that cannot be the weights of the encoder with this name."""
    if name.endswith(FILES):
        held = weights.get(FILE)
        if held is None or len(weights) != 1 or held.dtype != np.uint8 or held.ndim != 1:
            raise ValueError("the encoder's file is not one row of bytes")
        if hashlib.sha256(held.tobytes()).hexdigest() != checksum:
            raise ValueError("the encoder's file does not have the SHA-256 that the model names")
        return
    for key, array in weights.items():
        if not key.startswith(TENSOR) or array.dtype.kind not in KINDS:
            raise ValueError("the encoder's weights are not tensors of numbers")
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError("a weight of the encoder is not a number")


def unpack_encoder(weights: EncoderWeights, name: str, checksum: str | None, version: str | None) -> Encoder:
    """The encoder that has these weights. A module that was passed in Python has got them before."""
    if name.startswith(OWN):
        return load_encoder(name, checksum, version)
    if name.endswith(FILES):
        return _open(name, weights[FILE].tobytes())
    tensors, (kind, _, rest) = to_tensors(weights), name.partition(":")
    if name in LITES:
        found = load_lite(LITES[name], tensors)
    elif kind == "timm" and rest:
        found = load_timm(rest, tensors)
    elif kind == "torchvision" and rest:
        found = load_torchvision(rest, tensors)
    else:
        return load_encoder(name, checksum, version)  # which says that there is no such encoder
    _check(found, checksum)
    return replace(found, version=version or "")


def restore_module(module: nn.Module, weights: EncoderWeights) -> None:
    """Give a module the weights that a model file holds for it."""
    fill(type(module).__name__, module, to_tensors(weights))


def to_tensors(weights: EncoderWeights) -> dict[str, Tensor]:
    """The tensors by their names in the network."""
    return {name.removeprefix(TENSOR): torch.from_numpy(np.array(array)) for name, array in weights.items()}


def _open(name: str, content: bytes) -> Encoder:
    """The encoder in a file's bytes, unless it needs anything outside them."""
    if name.endswith(".onnx"):
        library = require_extra(name, "export", "onnx")
        try:
            beside = has_data_beside(library.load_model_from_string(content).graph)
        except Exception as error:  # of protobuf
            raise SettingsError(f"{name} is not an ONNX network ({error})", setting="encoder") from error
        if beside:
            raise SettingsError(f"{name}, in the model file, takes weights from other files", setting="encoder")
    return open_content(name, content)


def _check(found: Encoder, checksum: str | None) -> None:
    if found.checksum != checksum:
        raise SettingsError(
            f"the weights of the encoder {found.name} in the model file are not those that the model was made with "
            f"(SHA-256 {found.checksum[:12]}… instead of {(checksum or 'unknown')[:12]}…)",
            setting="encoder",
        )


def _checksums(module: nn.Module) -> list[str]:
    """The checksums by which an encoder with these weights is known."""
    held = hash_module(module)
    return [held, published_checksum(held)]


def _to_array(encoder: Encoder, tensor: Tensor) -> Array:
    try:
        return tensor.detach().cpu().contiguous().numpy()
    except (TypeError, RuntimeError) as error:  # types that numpy does not have
        raise _not_included(encoder, f"it has weights of the type {tensor.dtype}") from error


def _not_included(encoder: Encoder, reason: str) -> SettingsError:
    return SettingsError(
        f"the weights of the encoder {encoder.name} cannot be kept: {reason}", setting="include_encoder"
    )
