"""Edges: a representation of small images that nobody has to learn, so that no task can change it.

How strongly the brightness changes in each of eight directions, in overlapping cells of the image: the idea of
histograms of oriented gradients (Dalal and Triggs, CVPR 2005), with weights that are powers of a cosine instead of
angles, so that it is made of plain operations that any runtime knows.

Samples are the last dimension while it computes: every operation then runs over contiguous numbers, which takes half
the time of convolutions and pooling.
"""

import math

import torch
from torch import Tensor

DIRECTIONS = 8
CELLS = 7
"""About so many cells lie side by side; each is twice as wide as their distance, so that neighbours overlap."""
SMALLEST = 4
TINY = 1e-12


def shows_edges(shape: tuple[int, ...]) -> bool:
    """Whether samples of this shape are images that are large enough."""
    return len(shape) in (2, 3) and min(shape[-2:]) >= SMALLEST


def edges(x: Tensor) -> Tensor:
    """(n, h, w) or (n, c, h, w) to (n, directions · cells): roots of the change in each direction and cell."""
    height, width = x.shape[-2:]
    images = (x if x.dim() == 4 else x.unsqueeze(1)).permute(1, 2, 3, 0).contiguous()
    across, down = _change(images, 2), _change(images, 1)
    squares = across * across + down * down
    inverse = torch.rsqrt(squares.clamp_min(TINY))  # a tiny number that is added is lost on the way to other runtimes
    strength, across, down = squares * inverse, across * inverse, down * inverse
    cell = max(2, round(min(height, width) / CELLS))
    found = []
    for number in range(DIRECTIONS // 2):
        angle = 2 * math.pi * number / DIRECTIONS
        along = torch.add(across * math.cos(angle), down, alpha=math.sin(angle))
        # The 7th power of the cosine: a direction counts what points within about 25 degrees of it, and the sign says
        # whether it goes forth or back.
        square = along.square()
        signed = along.mul_(square).mul_(square.square_()).mul_(strength)
        difference, both = _cells(_together(signed), cell), _cells(_together(signed.abs()), cell)
        found += [(both + difference).relu_(), (both - difference).relu_()]
    return torch.stack(found).flatten(0, 2).T.sqrt()


def _together(channels: Tensor) -> Tensor:
    return channels.sum(0) if len(channels) > 1 else channels[0]


def _change(images: Tensor, dim: int) -> Tensor:
    """From the neighbour before to the one behind; at the rim the pixel stands for the one that is missing."""
    size = images.shape[dim]
    before = torch.cat([images.narrow(dim, 0, 1), images.narrow(dim, 0, size - 1)], dim)
    behind = torch.cat([images.narrow(dim, 1, size - 1), images.narrow(dim, size - 1, 1)], dim)
    return behind - before


def _cells(field: Tensor, cell: int) -> Tensor:
    """Sums over windows of two by two cells, one cell apart, of (h, w, n)."""
    return _windows(_windows(field, 0, cell), 1, cell)


def _windows(field: Tensor, dim: int, cell: int) -> Tensor:
    """Blocks of a cell's width, of which the first begins half a cell outside; two neighbours are a window."""
    size, first = field.shape[dim], cell - cell // 2
    whole = (size - first) // cell
    blocks = [
        _added(field.narrow(dim, 0, first), dim, first),
        _added(field.narrow(dim, first, whole * cell), dim, cell),
    ]
    if last := size - first - whole * cell:
        blocks.append(_added(field.narrow(dim, size - last, last), dim, last))
    joined = torch.cat(blocks, dim)
    count = joined.shape[dim]
    return joined.narrow(dim, 0, count - 1) + joined.narrow(dim, 1, count - 1)


def _added(field: Tensor, dim: int, count: int) -> Tensor:
    """Sums over every so many neighbours."""
    blocks: Tensor = field.unflatten(dim, (field.shape[dim] // count, count))
    return blocks.sum(dim + 1)
