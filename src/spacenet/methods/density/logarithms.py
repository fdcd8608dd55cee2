"""Sums of what is known by its logarithm."""

import torch
from torch import Tensor


def log_sum(logarithms: Tensor) -> Tensor:
    """The logarithm of the sum over the last dimension, which stays, with size 1. The first may not be minus infinity.

    As torch.logsumexp, in a few operations that other runtimes compute without overflow too.
    """
    return (logarithms - torch.log_softmax(logarithms, -1))[..., :1]
