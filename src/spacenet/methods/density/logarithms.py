"""Sums in the logarithmic domain."""

import torch
from torch import Tensor


def log_sum(logarithms: Tensor) -> Tensor:
    """torch.logsumexp over the last dimension, with keepdim. The first element must not be minus infinity.

    Uses a few operations that other runtimes compute without overflow too.
    """
    return (logarithms - torch.log_softmax(logarithms, -1))[..., :1]
