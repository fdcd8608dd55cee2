"""Tensors by name in sections: model/…, optimizer/…"""

from collections.abc import Mapping

from torch import Tensor


def section(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors whose name begins with `prefix/`, without it."""
    return {name.removeprefix(prefix + "/"): t for name, t in tensors.items() if name.startswith(prefix + "/")}


def in_section(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {f"{prefix}/{name}": tensor for name, tensor in tensors.items()}
