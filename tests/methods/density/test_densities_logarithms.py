"""Sums of what is known by its logarithm."""

import math

import torch

from spacenet.methods.density.densities import log_sum


def test_it_is_the_logarithm_of_the_sum_wherever_the_largest_stands() -> None:
    far = torch.tensor([[-2000.0, 900.0], [900.0, -2000.0], [900.0, 900.0], [-2000.0, -2000.0], [3.0, -math.inf]])
    torch.testing.assert_close(log_sum(far), torch.logsumexp(far, -1, keepdim=True))
    assert torch.equal(log_sum(far[:, :1]), far[:, :1])
