"""Edges: a representation of small images that nobody has to learn, so that no task can change it.

How strongly the brightness changes in each of eight directions, in overlapping cells of the image: the idea of
histograms of oriented gradients (Dalal and Triggs, CVPR 2005), with weights that are powers of a cosine instead of
angles, so that it is made of plain operations that any runtime knows.

Differences and sums over cells are products with small matrices: for one image that is a third of the operations, and
the time goes with their number. Samples are the last dimension while it computes, so that the products have long rows.
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
"""About so many cells lie side by side; each is twice as wide as their distance, so that neighbours overlap."""
SMALLEST = 4
CHUNK = 64
"""So many images at a time stay near the processor; with thousands it takes several times as long."""
TINY = 1e-12
ANGLES = 2 * math.pi / DIRECTIONS * torch.arange(DIRECTIONS // 2).view(-1, 1, 1, 1, 1, 1) + torch.tensor(
    [0.0, math.pi]
).view(-1, 1, 1, 1, 1)
"""Of each direction and of the one that points back, (4, 2, 1, 1, 1, 1)."""
COSINES, SINES = ANGLES.cos(), ANGLES.sin()


def shows_edges(shape: tuple[int, ...]) -> bool:
    """Whether samples of this shape are images that are large enough."""
    return len(shape) in (2, 3) and min(shape[-2:]) >= SMALLEST


class Matrices(NamedTuple):
    """What images of one size are multiplied with."""

    across: Tensor  # (w, w) changes
    down: Tensor  # (h, h)
    beside: Tensor  # (cells, w) sums
    below: Tensor  # (cells, h)


def edges(x: Tensor) -> Tensor:
    """(n, h, w) or (n, c, h, w) to (n, directions · cells): roots of the change in each direction and cell."""
    height, width = x.shape[-2:]
    if torch.compiler.is_compiling():  # what is made meanwhile holds no numbers and must not be kept
        return _edges(x, _matrices(height, width, x.device))
    matrices = _kept_matrices(height, width, x.device)
    if x.is_cuda or len(x) <= CHUNK:
        return _edges(x, matrices)
    # Room for all of them first: parts that are kept one by one leave holes, and the next ones need memory never used.
    found = x.new_empty(len(x), DIRECTIONS * len(matrices.beside) * len(matrices.below))
    for part, place in zip(x.split(CHUNK), found.split(CHUNK), strict=True):
        place.copy_(_edges(part, matrices))
    return found


def _edges(x: Tensor, matrices: Matrices) -> Tensor:
    images = (x if x.dim() == 4 else x.unsqueeze(1)).permute(1, 2, 3, 0).contiguous()
    across, down = _in_rows(images, matrices.across), _in_columns(images, matrices.down)
    # A tiny number that is added, instead of a bound, is lost on the way to other runtimes.
    inverse = across.square().addcmul_(down, down).clamp_min_(TINY).reciprocal_()
    if _is_one(images):  # all directions at once: the time goes with the number of operations
        found = _in_cells(_strength(across, down, inverse, COSINES.to(x), SINES.to(x)).relu_(), matrices)
    else:  # and here with the numbers that are read and written: half of the directions, whose sign says forth or back
        forth = _strength(across, down, inverse, COSINES[:, :1].to(x), SINES[:, :1].to(x))
        found = torch.cat([_in_cells(forth.relu(), matrices), _in_cells(forth.clamp_max_(0), matrices).neg_()], 1)
    return found.sqrt_().flatten(0, 3).T


def _strength(across: Tensor, down: Tensor, inverse: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """The change in some directions, times the 6th power of the cosine between them: a direction counts what points
    within about 25 degrees of it. Of all channels together."""
    along = (across * cosines).addcmul_(down, sines)
    along.mul_(along.square().mul_(inverse).pow_(3))
    return along.sum(2) if along.shape[2] > 1 else along.squeeze(2)


def _in_cells(field: Tensor, matrices: Matrices) -> Tensor:
    """Sums over the cells."""
    return _in_rows(_in_columns(field, matrices.below), matrices.beside)


def _is_one(images: Tensor) -> bool:
    """Whether it is but one image; what is compiled or exported is for any number."""
    return not torch.compiler.is_compiling() and images.shape[-1] == 1


def _in_columns(images: Tensor, matrix: Tensor) -> Tensor:
    """The product with each column of (…, h, w, n)."""
    return (matrix @ images.flatten(-2)).view(*images.shape[:-3], len(matrix), *images.shape[-2:])


def _in_rows(images: Tensor, matrix: Tensor) -> Tensor:
    """The product with each row of (…, h, w, n)."""
    if _is_one(images):
        return (images.squeeze(-1) @ matrix.T).unsqueeze(-1)
    return matrix @ images


def _matrices(height: int, width: int, device: torch.device) -> Matrices:
    cell = max(2, round(min(height, width) / CELLS))
    made = _changes(width), _changes(height), _windows(width, cell), _windows(height, cell)
    return Matrices(*(torch.from_numpy(each.astype(np.float32)).to(device) for each in made))


_kept_matrices = cache(_matrices)


def _changes(size: int) -> Array:
    """From the neighbour before to the one behind; at the rim the pixel stands for the one that is missing."""
    place, identity = np.arange(size), np.eye(size)
    return identity[np.minimum(place + 1, size - 1)] - identity[np.maximum(place - 1, 0)]


def _windows(size: int, cell: int) -> Array:
    """Sums over windows of two cells' width, one cell apart; the first begins half a cell outside."""
    ends = [0, *range(cell - cell // 2, size, cell), size]
    place = np.arange(size)
    return np.stack([(begin <= place) & (place < end) for begin, end in zip(ends[:-2], ends[2:], strict=True)])
