"""The first entries of a stable order, without sorting the rest."""

import numpy as np
from torch import Tensor


def smallest(values: Tensor, count: int) -> Tensor:
    """`values.argsort(stable=True)[:count]`, of a vector on the CPU."""
    return _first(values, count, descending=False)


def largest(values: Tensor, count: int) -> Tensor:
    """`values.argsort(descending=True, stable=True)[:count]`, of a vector on the CPU."""
    return _first(values, count, descending=True)


def _first(values: Tensor, count: int, descending: bool) -> Tensor:
    if not 0 < count < len(values):
        return values.argsort(descending=descending, stable=True)[:count]
    position = len(values) - count if descending else count - 1
    limit = float(np.partition(values.numpy(), position)[position])
    # "Not beyond the limit" and not "up to it": a NaN, which compares with nothing, must stay.
    candidates = (~(values < limit) if descending else ~(values > limit)).nonzero().flatten()
    return candidates[values[candidates].argsort(descending=descending, stable=True)[:count]]
