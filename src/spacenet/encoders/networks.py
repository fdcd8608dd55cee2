"""Frozen networks as encoders use them: modules that go to where their inputs are; versions and hashes of weights."""

import hashlib
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from spacenet.encoders.inputs import ImageInput
from spacenet.errors import SettingsError

CHUNK = 1024**2


class FrozenNetwork(nn.Module):
    """A module for prediction only, which goes to where its inputs are. What it gives is flattened."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner, self.place = inner, torch.device("cpu")

    def forward(self, x: Tensor) -> Tensor:
        if x.device != self.place:
            self.inner.to(x.device)
            self.place = x.device
        return self.compute(x)

    def compute(self, x: Tensor) -> Tensor:
        """The features of samples as the network takes them."""
        return cast(Tensor, self.inner(x)).flatten(1)


def freeze(network: nn.Module) -> nn.Module:
    """The network for prediction only."""
    return network.eval().requires_grad_(False)


def fill(name: str, network: nn.Module, tensors: Mapping[str, Tensor]) -> None:
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


def hash_module(network: nn.Module) -> str:
    """The SHA-256 of all numbers that a module keeps, with their names, types and shapes."""
    digest = hashlib.sha256()
    for name, tensor in sorted(network.state_dict().items()):
        numbers = tensor.detach().cpu().contiguous()
        digest.update(f"{name} {numbers.dtype} {tuple(numbers.shape)}\n".encode())
        digest.update(numbers.flatten().view(torch.uint8).numpy().tobytes() if numbers.numel() else b"")
    return digest.hexdigest()


def hash_file(*paths: Path) -> str:
    """The SHA-256 of a file; of several, that of their contents one after the other."""
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            while block := file.read(CHUNK):
                digest.update(block)
    return digest.hexdigest()


def package_version(package: str) -> str:
    """The version of what is installed; empty if it is not."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def count_features(name: str, network: Callable[[Tensor], Tensor], images: ImageInput) -> int:
    """How many features a network gives for an image. Raises `SettingsError` if it takes no such images."""
    try:
        with torch.inference_mode():
            found: Any = network(torch.zeros(1, *images.shape))
    except Exception as error:
        problem = f"the encoder {name} does not take images of the shape {images.shape} ({error})"
        raise SettingsError(problem, setting="encoder") from error
    if not isinstance(found, Tensor) or found.dim() != 2 or len(found) != 1:
        raise SettingsError(f"the encoder {name} does not give one row of features for an image", setting="encoder")
    return int(found.shape[1])
