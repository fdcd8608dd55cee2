"""Encoders of timm and torchvision: with the weights that the library finds, or with given ones."""

from collections.abc import Mapping

from torch import Tensor, nn

from spacenet.encoders.encoder import Encoder
from spacenet.encoders.inputs import ImageInput, Interpolation
from spacenet.encoders.networks import FrozenNetwork, count_features, fill, freeze, hash_module, package_version
from spacenet.errors import SettingsError
from spacenet.utils.extras import require_extra

EXTRA = "encoders"
HEADS = ("fc", "classifier", "heads", "head")
"""What torchvision calls the layers behind the features."""
Tensors = Mapping[str, Tensor]


def load_timm(name: str, tensors: Tensors | None = None) -> Encoder:
    """A model of timm, which knows its size and normalization."""
    library = require_extra(f"timm:{name}", EXTRA, "timm")
    try:
        network = library.create_model(name, pretrained=tensors is None, num_classes=0)
    except Exception as error:  # its own kinds of errors, for a name or for a download
        raise SettingsError(f"timm:{name} cannot be loaded ({error})", setting="encoder") from error
    if tensors is not None:
        fill(f"timm:{name}", network, tensors)
    data = library.data.resolve_data_config({}, model=network)
    mode: Interpolation = "bilinear" if data.get("interpolation") == "bilinear" else "bicubic"
    images = ImageInput(data["input_size"][-1], tuple(data["mean"]), tuple(data["std"]), mode, data["crop_pct"])
    return from_module(f"timm:{name}", network, images, package_version("timm"))


def load_torchvision(name: str, tensors: Tensors | None = None) -> Encoder:
    """A model of torchvision without its classifier."""
    library = require_extra(f"torchvision:{name}", EXTRA, "torchvision.models")
    try:
        weights = library.get_model_weights(name).DEFAULT
        network = library.get_model(name, weights=weights if tensors is None else None)
    except Exception as error:
        raise SettingsError(f"torchvision:{name} cannot be loaded ({error})", setting="encoder") from error
    kept = weights.transforms()
    mode: Interpolation = "bicubic" if "bicubic" in str(kept.interpolation).lower() else "bilinear"
    images = ImageInput(
        kept.crop_size[0], tuple(kept.mean), tuple(kept.std), mode, kept.crop_size[0] / kept.resize_size[0]
    )
    for head in HEADS:
        if hasattr(network, head):
            setattr(network, head, nn.Identity())
            break
    if tensors is not None:
        fill(f"torchvision:{name}", network, tensors)
    return from_module(f"torchvision:{name}", network, images, package_version("torchvision"))


def from_module(name: str, network: nn.Module, images: ImageInput, version_: str) -> Encoder:
    """A module as an encoder."""
    freeze(network)
    frozen = FrozenNetwork(network)
    return Encoder(name, version_, hash_module(network), count_features(name, frozen, images), frozen, images)
