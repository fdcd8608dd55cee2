import math

import torch

from spacenet.methods.density.calibration import DOUBT, likelihoods

Y = torch.arange(60) % 3
SCORES = 2 * torch.nn.functional.one_hot(Y, 3) + torch.randn(60, 3, generator=torch.Generator().manual_seed(0))


def test_the_scale_of_scores_does_not_matter() -> None:
    torch.testing.assert_close(likelihoods(SCORES, Y), likelihoods(4 * SCORES, Y))


def test_better_scores_make_the_classes_more_probable() -> None:
    worse = SCORES.clone()
    worse[:10] = worse[:10].roll(1, 1)
    assert float(likelihoods(worse, Y).sum()) < float(likelihoods(SCORES, Y).sum())


def test_a_single_sample_cannot_decide() -> None:
    sure = 1e6 * torch.nn.functional.one_hot(Y, 3).float()
    sure[0] = sure[0].roll(1)
    found = likelihoods(sure, Y)
    assert float(found[0]) >= math.log(DOUBT / 3) - 1e-9
    assert float(found[1:].min()) > -0.1
