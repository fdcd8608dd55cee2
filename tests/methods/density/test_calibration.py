import math

import pytest
import torch

from spacenet.methods.density.calibration import DOUBT, Calibration, likelihoods

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


def samples(sharp: float, count: int = 2000) -> tuple[torch.Tensor, torch.Tensor]:
    """Scores, and classes that are drawn with the probabilities of `sharp` times these."""
    rng = torch.Generator().manual_seed(1)
    scores = 3 * torch.randn(count, 4, generator=rng)
    return scores, torch.multinomial((sharp * scores).softmax(1), 1, generator=rng)[:, 0]


@pytest.mark.parametrize("sharp", [0.25, 0.5, 1.0, 2.0])
def test_the_factor_is_that_which_the_classes_were_drawn_with(sharp: float) -> None:
    calibration = Calibration()
    assert calibration.factor == 1.0
    scores, y = samples(sharp)
    for half in (slice(0, 1000), slice(1000, 2000)):
        calibration.add(scores[half], y[half])
    assert 0.8 * sharp <= calibration.factor <= 1.25 * sharp
    again = Calibration()
    again.load(calibration.tensors())
    assert again.factor == calibration.factor
    Calibration.check(calibration.tensors(), 2)


def test_a_few_samples_do_not_move_it() -> None:
    calibration = Calibration()
    calibration.add(torch.zeros(0, 3), torch.zeros(0, dtype=torch.long))
    calibration.add(torch.zeros(5, 1), torch.zeros(5, dtype=torch.long))  # a single class
    assert calibration.factor == 1.0
    calibration.add(2 * torch.eye(3)[:2], torch.arange(2))
    assert calibration.factor == 1.0
    assert len(calibration) == 3


@pytest.mark.parametrize("value", [float("nan"), 1.0, float("-inf")])
def test_impossible_calibrations_are_refused(value: float) -> None:
    calibration = Calibration()
    calibration.add(*samples(1.0, 50))
    calibration.table[0, 3] = value
    with pytest.raises(ValueError, match="tasks has values that are not possible"):
        Calibration.check(calibration.tensors(), 1)
    with pytest.raises(ValueError, match="wrong size"):
        Calibration.check(calibration.tensors(), 2)
