"""Tensors by name: in sections (model/…, optimizer/…), checked, and in files of safetensors with facts as JSON."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from spacenet.errors import RunError
from spacenet.utils.files import report_os_errors, save_bytes

HEADER = "spacenet"


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


def take_tensors(
    tensors: Mapping[str, Tensor],
    shapes: Mapping[str, tuple[int, ...]],
    what: str,
    *,
    dtype: torch.dtype = torch.float32,
    least: float = -math.inf,
    most: float = math.inf,
) -> dict[str, Tensor]:
    """The other tensors, once these are found to be there, each of its shape and of finite numbers between bounds;
    otherwise `ValueError`."""
    for name, shape in shapes.items():
        held = tensors.get(name)
        if held is None or held.dtype != dtype or tuple(held.shape) != shape:
            raise ValueError(f"{what}: {name} is missing or of the wrong size")
        possible = held.isfinite() & (held >= least) & (held <= most)
        if not bool(possible.all()):
            raise ValueError(f"{what}: {name} has values that are not possible")
    return {name: tensor for name, tensor in tensors.items() if name not in shapes}


def triangle_size(side: int) -> int:
    """The number of entries that `lower_triangle` leaves of a matrix."""
    return side * (side + 1) // 2


def lower_triangle(matrix: Tensor) -> Tensor:
    """A symmetric matrix without what it has twice: (d, d) to (d · (d + 1) / 2,)."""
    rows, columns = torch.tril_indices(len(matrix), len(matrix))
    return matrix[rows, columns]


def symmetric_matrix(triangle: Tensor) -> Tensor:
    """The inverse of `lower_triangle`."""
    side = (math.isqrt(8 * len(triangle) + 1) - 1) // 2
    rows, columns = torch.tril_indices(side, side)
    matrix = triangle.new_zeros(side, side)
    matrix[rows, columns] = matrix[columns, rows] = triangle
    return matrix


def save_tensors(path: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
    """Write tensors and facts so that the file is there as a whole or not at all; equal content gives equal bytes."""
    header = {HEADER: json.dumps(facts, sort_keys=True)}  # one entry: the order of several would not be fixed
    content = save({name: tensor.contiguous() for name, tensor in tensors.items()}, header)
    save_bytes(path, content)  # not save_file: it makes files that only their owner can read


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what `save_tensors` wrote. Raises `RunError` for a damaged file, `FileError` if it cannot be read now."""
    try:
        with report_os_errors(path, "read"), safe_open(path, framework="pt") as file:
            facts = json.loads((file.metadata() or {})[HEADER])
            return {name: file.get_tensor(name) for name in file.keys()}, facts
    except (SafetensorError, KeyError, ValueError) as error:
        raise RunError(f"{path} cannot be read ({error}); the run has to start again") from error
