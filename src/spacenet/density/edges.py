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
CHUNK = 128
"""So many images at a time stay near the processor; with thousands it takes five times as long."""
TINY = 1e-12
ANGLES = 2 * math.pi / DIRECTIONS * torch.arange(DIRECTIONS // 2).view(-1, 1, 1, 1, 1)
"""Of the directions, without those that point back."""
COSINES, SINES = ANGLES.cos(), ANGLES.sin()


def shows_edges(shape: tuple[int, ...]) -> bool:
    """Whether samples of this shape are images that are large enough."""
    return len(shape) in (2, 3) and min(shape[-2:]) >= SMALLEST


def edges(x: Tensor) -> Tensor:
    """(n, h, w) or (n, c, h, w) to (n, directions · cells): roots of the change in each direction and cell."""
    if x.is_cuda or torch.compiler.is_compiling():
        return _edges(x)
    return torch.cat([_edges(part) for part in x.split(CHUNK)])


def _edges(x: Tensor) -> Tensor:
    height, width = x.shape[-2:]
    images = (x if x.dim() == 4 else x.unsqueeze(1)).permute(1, 2, 3, 0).contiguous()
    across, down = _change(images, 2), _change(images, 1)
    strength = torch.addcmul(across * across, down, down)
    inverse = torch.rsqrt(strength.clamp_min(TINY))  # a tiny number that is added is lost on the way to other runtimes
    strength.mul_(inverse)
    along = torch.addcmul(across.mul_(inverse) * COSINES.to(x), down.mul_(inverse), SINES.to(x))
    # The 7th power of the cosine: a direction counts what points within about 25 degrees of it, and the sign says
    # whether it goes forth or back.
    square = along.square()
    signed = along.mul_(square).mul_(square.square_()).mul_(strength)
    signed = signed.sum(1) if signed.shape[1] > 1 else signed[:, 0]
    cell = max(2, round(min(height, width) / CELLS))
    both, difference = (_windows(_windows(each, 1, cell), 2, cell) for each in (signed.abs(), signed))
    found = torch.stack([both + difference, both - difference], 1)
    return found.relu_().flatten(0, 3).T.sqrt()


def _change(images: Tensor, dim: int) -> Tensor:
    """From the neighbour before to the one behind; at the rim the pixel stands for the one that is missing."""
    size = images.shape[dim]
    before = torch.cat([images.narrow(dim, 0, 1), images.narrow(dim, 0, size - 1)], dim)
    behind = torch.cat([images.narrow(dim, 1, size - 1), images.narrow(dim, size - 1, 1)], dim)
    return behind - before


def _windows(field: Tensor, dim: int, cell: int) -> Tensor:
    """Sums over windows of two cells' width, one cell apart: two neighbours each of blocks of a cell's width, of which
    the first begins half a cell outside."""
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
