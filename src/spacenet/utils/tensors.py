"""Tensors by name in sections: model/…, optimizer/…"""

from collections.abc import Mapping

import torch
from torch import Tensor


def section(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors whose name begins with `prefix/`, without it."""
    return {name.removeprefix(prefix + "/"): t for name, t in tensors.items() if name.startswith(prefix + "/")}


def in_section(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors with `prefix/` before their names."""
    return {f"{prefix}/{name}": tensor for name, tensor in tensors.items()}


def check_sections(tensors: Mapping[str, Tensor], *prefixes: str) -> None:
    """Raise `ValueError` if a tensor stands in none of these sections."""
    unknown = sorted(name for name in tensors if not name.startswith(tuple(prefix + "/" for prefix in prefixes)))
    if unknown:
        raise ValueError(f"unknown content ({', '.join(unknown[:3])})")


def check_shapes(tensors: Mapping[str, Tensor], shapes: Mapping[str, tuple[int, ...]], what: str) -> None:
    """Raise `ValueError` unless there are exactly these tensors, of 32-bit numbers, each of its shape."""
    unknown = sorted(set(tensors) - set(shapes))
    if unknown:
        raise ValueError(f"{what}: unknown content ({', '.join(unknown[:3])})")
    for name, shape in shapes.items():
        held = tensors.get(name)
        if held is None or held.dtype != torch.float32 or tuple(held.shape) != shape:
            raise ValueError(f"{what}: {name} is missing or of the wrong size")


def check_finite(tensors: Mapping[str, Tensor], least: Mapping[str, float], what: str) -> None:
    """Raise `ValueError` where one of these tensors has a value that is no number, or below the least possible one."""
    for name, bound in least.items():
        if not bool((tensors[name].isfinite() & (tensors[name] >= bound)).all()):
            raise ValueError(f"{what}: {name} has values that are not possible")
