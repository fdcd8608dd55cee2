"""The model file: one safetensors file, self-contained, no pickle, with a checksum. It is read whole, or refused.

It holds a header as one JSON text, and arrays: the normalization, and what the method has learned. For methods that
divide a network among tasks, `file_ledger` makes them, in about as many bytes as the connections need; for all others
`file_state`. The weights of an encoder may be there too, under encoder/.

When a file is read everything is checked: it may be damaged or malicious.
"""

import hashlib
import json
import math
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
from annotated_types import Ge
from safetensors import SafetensorError
from safetensors.numpy import load, save

from spacenet import __version__
from spacenet.config.model import ModelConfig, PreprocessingConfig, Value
from spacenet.config.settings import Settings, check_section, from_plain, to_plain
from spacenet.data.checks import check_labels
from spacenet.data.preprocessing import Array, Normalization
from spacenet.encoders.weights import EncoderWeights, check_weights
from spacenet.errors import ModelFileError, SettingsError, UnreadableModelError
from spacenet.methods import get_method
from spacenet.model.file_ledger import check_packed, encode_ledger, load_ledger, read_ledger
from spacenet.model.file_parts import Arrays, expect
from spacenet.model.file_state import check_new_numbers, encode_state, load_state
from spacenet.model.model import Model
from spacenet.nets import build_net
from spacenet.utils.files import atomic_write, real_path, report_os_errors
from spacenet.utils.lock import lock

HEADER = "spacenet-model"
MAX_HEADER = 4 * 1024**2
"""Bytes of a header that are read; a model of a thousand classes has a tenth of that."""
FORMAT = 3
PROBE = 8
"""Inputs that a model must answer alike before and after it is written."""
ENCODER = "encoder/"
MEAN, STD = "normalization/mean", "normalization/std"
MAX_TASKS = np.iinfo(np.int16).max


def save_model(path: Path, model: Model) -> None:
    """Put a model into the place of a file. On any doubt the file stays as it was; equal models give equal bytes.

    What was written is read again in full and must answer like the model before it is used. A file that another process
    has changed since the model was loaded from it is not replaced.
    """
    path = real_path(path)  # a link stays a link
    content = to_bytes(model)
    with report_os_errors(path, "written"), lock(path), atomic_write(path) as beside:
        _check_unchanged(path, model)
        beside.write_bytes(content)
        _check_written(beside, model)
    model.origin = path, _checksum_in(content)


def load_model(path: Path) -> Model:
    """Read a model file. Its content is not trusted: everything is checked."""
    path = Path(path).expanduser()
    try:
        content = _content(path)
        model = from_bytes(content)
    except ModelFileError as error:
        raise type(error)(f"{path}: {error}") from error
    model.origin = real_path(path), _checksum_in(content)
    return model


def _check_unchanged(path: Path, model: Model) -> None:
    origin, checksum = model.origin or (None, "")
    if path == origin and path.exists() and _checksum_in(_content(path)) != checksum:
        raise ModelFileError(
            f"{path} was changed by another process since this model was loaded from it.",
            cli="Learn the task again.",
            python="Load it again and repeat what you did, or save this model under another name.",
        )


def _check_written(beside: Path, model: Model) -> None:
    """Raise `ModelFileError` unless the file is a model that answers like this one."""
    try:
        written, probe = from_bytes(_content(beside)), make_probe(model)
        if written.encoder_weights is not None:
            assert written.encoder is not None  # it is made of what was written, or that raises
        same = torch.equal(written.scores(probe), model.scores(probe)) and written.tasks == model.tasks
    except (ModelFileError, SettingsError) as error:
        raise ModelFileError(f"the model cannot be saved: {error}") from error
    if not same:
        raise ModelFileError("the model was not saved: what was written does not answer like it")


def make_probe(model: Model) -> Array:
    """A few raw inputs like those that a model takes."""
    values = np.random.default_rng(0).normal(size=(PROBE, *model.input_shape)).astype(np.float32)
    return model.fitted_normalization.invert(torch.from_numpy(values))


def to_bytes(model: Model) -> bytes:
    text, arrays = encode(model)
    return bytes(save(arrays, {HEADER: f"{compute_checksum(text, arrays)} {text}"}))


def from_bytes(content: bytes) -> Model:
    length = int.from_bytes(content[:8], "little")
    header = _parse(content[8 : 8 + min(length, MAX_HEADER)])
    try:
        arrays: Arrays = load(content)
    except (SafetensorError, ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise ModelFileError(f"damaged, or not a model file ({error})") from error
    metadata = header.get("__metadata__")
    checksum, _, text = str(metadata.get(HEADER, "") if isinstance(metadata, dict) else "").partition(" ")
    if not text:
        reason = "it has no header; with most methods, runs of earlier versions left such files: repeat the run"
        raise ModelFileError(f"not a model to use: {reason}")
    if checksum != compute_checksum(text, arrays):
        raise ModelFileError("damaged: its content does not match its checksum; copy or download it again")
    return decode(text, arrays)


def _content(path: Path) -> bytes:
    """The file, if its size is what its header says."""
    try:
        with path.open("rb") as file:
            start = file.read(8)
            length = int.from_bytes(start, "little")
            if len(start) < 8 or not 0 < length <= MAX_HEADER:
                raise ModelFileError("not a model file")
            text = file.read(length)
            ends = [each["data_offsets"][1] for name, each in _parse(text).items() if name != "__metadata__"]
            if os.fstat(file.fileno()).st_size != 8 + length + max(ends, default=0):
                raise ModelFileError("cut off, or not a model file")
            return start + text + file.read()
    except FileNotFoundError as error:
        raise UnreadableModelError("no such file") from error
    except OSError as error:
        raise UnreadableModelError(f"cannot be read ({error.strerror or error})") from error
    except (KeyError, TypeError, IndexError) as error:
        raise ModelFileError("damaged, or not a model file") from error


def _parse(text: str | bytes) -> dict[str, Any]:
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"damaged: its header cannot be read ({error})") from error
    if not isinstance(header, dict):
        raise ModelFileError("damaged: its header cannot be read")
    return header


def _checksum_in(content: bytes) -> str:
    """The checksum that a file claims to have."""
    metadata = _parse(content[8 : 8 + int.from_bytes(content[:8], "little")]).get("__metadata__", {})
    return str(metadata.get(HEADER, "")).partition(" ")[0]


def compute_checksum(text: str, arrays: Arrays) -> str:
    """The SHA-256 of a header's text and the arrays with their names, types and shapes."""
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass"))
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode("utf-8", "surrogatepass"))
        digest.update(array.tobytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class Header(Settings):
    """The header's JSON text."""

    format: int
    spacenet: str
    config: Any  # all of it, as `ModelConfig.to_plain` gives it
    input_shape: tuple[Annotated[int, Ge(1)], ...]
    scale: Value
    tasks: Any  # lists of labels; checked below, which takes a hundredth of the time
    metrics: Any = field(default_factory=dict)

    def validate(self) -> None:
        PreprocessingConfig(scale=self.scale)
        check_section("config", self.config)
        check_section("metrics", self.metrics)
        tasks = self.tasks
        if not isinstance(tasks, list) or not all(isinstance(task, list) for task in tasks) or not any(tasks):
            raise SettingsError("not lists of classes, or no classes", setting="tasks")
        for task in self.tasks:  # a task has no classes when all of them were removed
            for kind in set(map(type, task)):
                check_labels(np.array([label for label in task if type(label) is kind], dtype=object), "tasks")


def encode(model: Model) -> tuple[str, Arrays]:
    normalization = model.fitted_normalization
    config, std, tasks = model.config.to_plain(), normalization.std, [list(task) for task in model.tasks]
    header = Header(FORMAT, __version__, config, model.input_shape, normalization.scale, tasks, model.metrics)
    arrays = {
        MEAN: normalization.mean.expand(model.input_shape).numpy(),
        STD: (std.expand(model.input_shape) if std.dim() else std.reshape(1)).numpy(),
    }
    arrays |= encode_ledger(model.method) if model.method.divides_network else encode_state(model)
    arrays |= {ENCODER + name: array for name, array in (model.encoder_weights or {}).items()}
    text = json.dumps(to_plain(header), sort_keys=True)
    return text, {name: np.asarray(array, order="C") for name, array in arrays.items()}


def decode(text: str, arrays: Arrays) -> Model:
    """The model that a header's text and arrays describe; everything in them that cannot be is an error."""
    try:
        header = _header(text)
        config = ModelConfig.from_plain(header.config)
        kind = get_method(config.method)
        expect(len(config.net.hidden) <= len(arrays), "more layers than it holds")
        expect(":" not in config.net.name or bool(config.net.graph), "a network without its graph")
        normalization = _normalization(header, arrays, config.preprocessing)
        blueprint = build_net(config.net, header.input_shape)
        tasks = [tuple(task) for task in header.tasks]
        encoder_weights = _take_encoder(arrays, config.preprocessing)
        rest, ledger = {name: array for name, array in arrays.items() if name not in (MEAN, STD)}, None
        if kind.divides_network:
            ledger = read_ledger(blueprint, rest, len(tasks), outputs=sum(map(len, tasks)))
            check_packed(ledger)
        else:
            check_new_numbers(kind, blueprint, config.method_settings, rest)
        model = Model(config, header.input_shape, normalization, tasks, header.metrics, encoder_weights=encoder_weights)
        if ledger is None:
            load_state(model, rest)
        else:
            load_ledger(model, ledger, rest)
        return model
    except ValueError as error:  # of our own checks, and for settings that cannot work
        raise ModelFileError(f"not a usable model file: {error}") from error


def _take_encoder(arrays: Arrays, config: PreprocessingConfig) -> EncoderWeights | None:
    """Remove the weights of the encoder from the arrays. They are used only when the encoder is."""
    found = {name.removeprefix(ENCODER): arrays.pop(name) for name in list(arrays) if name.startswith(ENCODER)}
    if found:
        expect(config.encoder is not None, "weights of an encoder, but none is named")
        check_weights(found, config.encoder or "", config.encoder_checksum)
    return found or None


def _normalization(header: Header, arrays: Arrays, config: PreprocessingConfig) -> Normalization:
    shape = header.input_shape
    mean, std = arrays.get(MEAN), arrays.get(STD)
    if mean is None or std is None or not shape or mean.shape != shape or std.shape not in (shape, (1,)):
        raise ValueError("input shape and normalization do not agree")
    for part in (mean, std):
        expect(part.dtype == np.float32 and bool(np.isfinite(part).all()), "its normalization is not made of numbers")
    expect(mean.size > 0 and bool((std > 0).all()), "its standard deviation is not above 0")
    deviation, clip = torch.from_numpy(std), math.inf if config.clip is None else config.clip
    each = deviation if std.shape == shape else deviation[0]
    return Normalization(header.scale, torch.from_numpy(mean), each, clip, bool(config.root))


def _header(text: str) -> Header:
    values = _parse(text)
    version = values.get("format")
    if not isinstance(version, int) or isinstance(version, bool):
        raise ModelFileError("not a usable model file (its header names no format)")
    if version != FORMAT:
        age, remedy = ("a newer", "upgrade") if version > FORMAT else ("an older", "train it again")
        raise ModelFileError(
            f"written by {age} spacenet, in format {version}; this one ({__version__}) reads format {FORMAT}: {remedy}"
        )
    header = from_plain(Header, values, "its header")
    expect(len(header.tasks) <= MAX_TASKS, "more tasks than possible")
    return header
