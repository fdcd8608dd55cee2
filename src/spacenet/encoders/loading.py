"""Encoders by name: of a package, of a file, or a module of one's own.

efficientnet-lite0    comes with the extra `encoders`, weights included; -lite2 is larger
all-minilm-l6-v2      takes texts; comes with the extra `texts`, weights included
speech-embedding      takes sounds; comes with the extra `audio`, weights included
timm:NAME             a model of timm, with the preprocessing that timm knows for it
torchvision:NAME      a model of torchvision with its default weights
FILE.onnx, FILE.pt2   an exported network: normalized images in, features out
"""

import logging
import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from torch import Tensor, nn

from spacenet.encoders.efficientnet import LOADERS
from spacenet.encoders.encoder import Encoder
from spacenet.encoders.exported import FILES, load_file
from spacenet.encoders.inputs import ImageInput
from spacenet.encoders.libraries import from_module, load_timm, load_torchvision
from spacenet.encoders.networks import count_features
from spacenet.encoders.sounds import SPEECH, load_speech
from spacenet.encoders.texts import MINILM, load_minilm
from spacenet.errors import SettingsError
from spacenet.registry import unknown

log = logging.getLogger("spacenet")
PACKAGED: dict[str, Callable[[], Encoder]] = {**LOADERS, MINILM: load_minilm, SPEECH: load_speech}
"""Encoders whose weights come with a package."""
FORMS = (*PACKAGED, "timm:NAME", "torchvision:NAME", "FILE.onnx", "FILE.pt2")
OWN = "own:"
"""Begins the name of a module that was passed in Python."""


def load_encoder(name: str, checksum: str | None = None, version: str | None = None) -> Encoder:
    """The encoder with this name. With a checksum, an encoder with other weights is an error.

    Parameters
    ----------
    name : str
        One of the forms above, or what `encoder_name` returned in this process.
    checksum : str, optional
        The SHA-256 that its weights must have.
    version : str, optional
        That of its package when the checksum was taken; with another one, a warning says that features may differ.

    Returns
    -------
    Encoder
    """
    name = _full_name(name)
    found = _own[name] if name in _own else _load(name, _stamp(name))
    versions = f"version {found.version or 'unknown'} instead of {version}"
    if checksum and found.checksum != checksum:
        also = f"{versions}, " if version and version != found.version else ""
        raise SettingsError(
            f"the encoder {name} that is installed here has other weights than the one that the model was made with "
            f"({also}SHA-256 {found.checksum[:12]}… instead of {checksum[:12]}…); install the same version",
            setting="encoder",
        )
    if version and version != found.version:
        log.warning("spacenet: warning: the encoder %s has %s; its features may differ", name, versions)
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
        return load_timm(rest)
    if kind == "torchvision" and rest:
        return load_torchvision(rest)
    if name.endswith(FILES):
        return load_file(Path(name))
    raise unknown("encoder", name, FORMS, setting="encoder")


def _from_callable(given: Callable[[Tensor], Tensor]) -> Encoder:
    name = re.sub(r"\W+", "-", getattr(given, "__name__", type(given).__name__)).strip("-").lower()
    if isinstance(given, nn.Module):
        return from_module(OWN + name, given, ImageInput(), "")
    if not callable(given):
        raise SettingsError(f"{given!r} is not a name, a module or a function", setting="encoder")
    images = ImageInput()
    features = count_features(name, given, images)
    return Encoder(OWN + name, "", "", features, given, images)
