"""Edges: a representation of small images that is not learned, so that no task can change it.

The strength of brightness changes in each of eight directions, in overlapping cells of the image: histograms of
oriented gradients (Dalal and Triggs, CVPR 2005), with powers of a cosine as weights instead of angles, so that every
runtime for exported models supports the operations.

Differences and sums over cells are products with small matrices, which takes a third of the operations for one image.
Samples are the last dimension during the computation, so that the products have long rows.
"""

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Array = NDArray[Any]

DIRECTIONS = 8
CELLS = 7
"""About this many cells per side; each is twice as wide as their distance, so that neighbors overlap."""
SMALLEST = 4
CHUNK = 64
"""Images at a time. This many fit into the processor's cache; thousands take several times as long."""
TINY = 1e-12
OPPOSITE = torch.tensor([0.0, math.pi]).view(-1, 1, 1, 1, 1)
ANGLES = 2 * math.pi / DIRECTIONS * torch.arange(DIRECTIONS // 2).view(-1, 1, 1, 1, 1, 1) + OPPOSITE
"""Of each direction and its opposite, (4, 2, 1, 1, 1, 1)."""
COSINES, SINES = ANGLES.cos(), ANGLES.sin()


def supports_edges(shape: tuple[int, ...]) -> bool:
    """Whether samples of this shape are large enough images."""
    return len(shape) in (2, 3) and min(shape[-2:]) >= SMALLEST


def cell_grid(shape: tuple[int, ...]) -> tuple[int, int]:
    """Rows and columns of cells, the last dimensions of the edges of images of this shape."""
    height, width = shape[-2:]
    made = _matrices(height, width, torch.device("cpu"))
    return len(made.below), len(made.beside)


class Matrices(NamedTuple):
    """The matrices for images of one size."""

    across: Tensor  # (w, w) differences
    down: Tensor  # (h, h)
    beside: Tensor  # (cells, w) sums
    below: Tensor  # (cells, h)


def extract_edges(x: Tensor) -> Tensor:
    """(n, h, w) or (n, c, h, w) to (n, directions · cells): the root of the change in each direction and cell."""
    height, width = x.shape[-2:]
    if torch.compiler.is_compiling():  # tensors created while compiling must not be cached
        return _edges(x, _matrices(height, width, x.device))
    matrices = _cached_matrices(height, width, x.device)
    if x.is_cuda or len(x) <= CHUNK:
        return _edges(x, matrices)
    # Allocated as a whole: many small allocations would fragment the memory.
    found = x.new_empty(len(x), DIRECTIONS * len(matrices.beside) * len(matrices.below))
    for part, place in zip(x.split(CHUNK), found.split(CHUNK), strict=True):
        place.copy_(_edges(part, matrices))
    return found


def _edges(x: Tensor, matrices: Matrices) -> Tensor:
    images = (x if x.dim() == 4 else x.unsqueeze(1)).permute(1, 2, 3, 0).contiguous()
    across, down = _multiply_rows(images, matrices.across), _multiply_columns(images, matrices.down)
    # A bound, because other runtimes would lose a tiny number that is added.
    inverse = across.square().addcmul_(down, down).clamp_min_(TINY).reciprocal_()
    if _is_single(images):  # all directions at once: the number of operations determines the time
        found = _sum_cells(_strength(across, down, inverse, COSINES.to(x), SINES.to(x)).relu_(), matrices)
    else:  # here memory traffic does: half of the directions, whose sign distinguishes them from the opposite ones
        signed = _strength(across, down, inverse, COSINES[:, :1].to(x), SINES[:, :1].to(x))
        found = torch.cat([_sum_cells(signed.relu(), matrices), _sum_cells(signed.clamp_max_(0), matrices).neg_()], 1)
    return found.sqrt_().flatten(0, 3).T


def _strength(across: Tensor, down: Tensor, inverse: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """The change along some directions times the 6th power of the cosine of the angle between them, summed over all
    channels. A direction responds to changes within about 25 degrees of it."""
    along = (across * cosines).addcmul_(down, sines)
    along.mul_(along.square().mul_(inverse).pow_(3))
    return along.sum(2) if along.shape[2] > 1 else along.squeeze(2)


def _sum_cells(field: Tensor, matrices: Matrices) -> Tensor:
    return _multiply_rows(_multiply_columns(field, matrices.below), matrices.beside)


def _is_single(images: Tensor) -> bool:
    """Whether this is a single image; compiled and exported code is for any number."""
    return not torch.compiler.is_compiling() and images.shape[-1] == 1


def _multiply_columns(images: Tensor, matrix: Tensor) -> Tensor:
    """The product with each column of (…, h, w, n)."""
    return (matrix @ images.flatten(-2)).view(*images.shape[:-3], len(matrix), *images.shape[-2:])


def _multiply_rows(images: Tensor, matrix: Tensor) -> Tensor:
    """The product with each row of (…, h, w, n)."""
    if _is_single(images):
        return (images.squeeze(-1) @ matrix.T).unsqueeze(-1)
    return matrix @ images


def _matrices(height: int, width: int, device: torch.device) -> Matrices:
    cell = max(2, round(min(height, width) / CELLS))
    made = _differences(width), _differences(height), _windows(width, cell), _windows(height, cell)
    return Matrices(*(torch.from_numpy(each.astype(np.float32)).to(device) for each in made))


_cached_matrices = cache(_matrices)


def _differences(size: int) -> Array:
    """The next pixel minus the previous one; at the border, the pixel itself replaces the missing one."""
    place, identity = np.arange(size), np.eye(size)
    return identity[np.minimum(place + 1, size - 1)] - identity[np.maximum(place - 1, 0)]


def _windows(size: int, cell: int) -> Array:
    """Sums over windows two cells wide, one cell apart; the first begins half a cell outside."""
    ends = [0, *range(cell - cell // 2, size, cell), size]
    place = np.arange(size)
    return np.stack([(begin <= place) & (place < end) for begin, end in zip(ends[:-2], ends[2:], strict=True)])
