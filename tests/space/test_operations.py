"""Operations that replace those of autograd compute the same bits."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from spacenet.space.operations import cross_entropy


@given(st.integers(1, 40), st.integers(1, 12), st.floats(0.01, 50), st.integers(0, 1000))
def test_the_cross_entropy_and_its_gradient_are_those_of_autograd(
    samples: int, classes: int, scale: float, seed: int
) -> None:
    rng = torch.Generator().manual_seed(seed)
    scores = (torch.randn(samples, classes, generator=rng) * scale).requires_grad_()
    target = torch.randint(classes, (samples,), generator=rng)
    expected = F.cross_entropy(scores, target)
    expected.backward()
    loss, gradient = cross_entropy(scores.detach(), target)
    assert torch.equal(loss, expected.detach())
    assert scores.grad is not None
    assert torch.equal(gradient, scores.grad)
