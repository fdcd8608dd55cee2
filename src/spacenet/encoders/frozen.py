"""Frozen networks: where they compute, and the hash of their weights."""

import hashlib
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch
from torch import Tensor, nn

CHUNK = 1024**2


class Moving:
    """A network that goes to where its inputs are."""

    def __init__(self, network: nn.Module, forward: Callable[[Tensor], Tensor]) -> None:
        self.network, self.forward, self.device = network, forward, torch.device("cpu")

    def __call__(self, x: Tensor) -> Tensor:
        if x.device != self.device:
            self.network.to(x.device)
            self.device = x.device
        return self.forward(x)


def freeze(network: nn.Module) -> nn.Module:
    """The network for prediction only."""
    return network.eval().requires_grad_(False)


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
