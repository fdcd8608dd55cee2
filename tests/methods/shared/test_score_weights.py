"""Weights of class statistics: chosen by their accuracy on held-out samples, summed over tasks."""

import pytest
import torch
from torch import Tensor

from spacenet.methods.shared.score_weights import (
    OWN_WEIGHT,
    OWN_WEIGHTS,
    STATISTICS_WEIGHT,
    STATISTICS_WEIGHTS,
    CandidateWeights,
    ScoreWeights,
)

BOTH = CandidateWeights.of("auto", "auto")


def test_given_weights_leave_nothing_to_choose() -> None:
    given = CandidateWeights.of(0.7, 0.0)
    assert not given.undecided
    assert given.choose(torch.zeros(0)) == ScoreWeights(0.7, 0.0)


@pytest.mark.parametrize(
    ("settings", "usual", "candidates"),
    [
        (("auto", 0.3), ScoreWeights(STATISTICS_WEIGHT, 0.3), len(STATISTICS_WEIGHTS)),
        ((0.0, "auto"), ScoreWeights(0.0, OWN_WEIGHT), len(OWN_WEIGHTS)),
        (("auto", "auto"), ScoreWeights(STATISTICS_WEIGHT, OWN_WEIGHT), len(STATISTICS_WEIGHTS) * len(OWN_WEIGHTS)),
    ],
)
def test_before_anything_is_measured_weights_are_the_usual_ones(
    settings: tuple[float, float], usual: ScoreWeights, candidates: int
) -> None:
    found = CandidateWeights.of(*settings)
    assert found.undecided
    assert found.choose(torch.zeros(0)) == usual
    assert len(found.statistics) * len(found.own) == candidates


def test_candidates_are_in_order_and_hold_the_usual_ones() -> None:
    for weights, usual in ((STATISTICS_WEIGHTS, STATISTICS_WEIGHT), (OWN_WEIGHTS, OWN_WEIGHT)):
        assert list(weights) == sorted(set(weights))
        assert weights[0] == 0
        assert usual in weights


def test_the_accuracy_is_measured_with_each_pair() -> None:
    rng = torch.Generator().manual_seed(0)
    score, typical, fit = (torch.randn(40, 6, generator=rng) * size for size in (1.0, 9.0, 3.0))
    y = torch.randint(6, (40,), generator=rng)
    found = BOTH.measure(score, typical.double(), fit, y)
    for row, first in enumerate(STATISTICS_WEIGHTS):
        for column, own in enumerate(OWN_WEIGHTS):
            right = ((score + own * typical + first * fit).argmax(1) == y).sum()
            assert float(found[row, column]) == pytest.approx(float(right) / 40)
    assert len(found.unique()) > 5
    only = CandidateWeights.of("auto", 0.0).measure(score, None, fit, y)
    assert torch.equal(only[:, 0], found[:, 0])
    BOTH.check(found, 2)


def test_a_weight_of_zero_ignores_what_is_not_finite() -> None:
    score = torch.zeros(2, 3)
    assert torch.equal(ScoreWeights(0.0, 0.0).add_up(score, score - torch.inf, score + torch.nan), score)


def test_the_pair_with_the_largest_sum_is_chosen_and_of_equal_ones_the_smallest() -> None:
    sums = torch.zeros(len(STATISTICS_WEIGHTS), len(OWN_WEIGHTS), dtype=torch.double)
    assert BOTH.choose(sums) == ScoreWeights(0.0, 0.0)
    sums[4, 2] = sums[6, 1] = 1.5
    assert BOTH.choose(sums) == ScoreWeights(STATISTICS_WEIGHTS[4], OWN_WEIGHTS[2])
    sums[6, 1] += 0.5
    assert BOTH.choose(sums) == ScoreWeights(STATISTICS_WEIGHTS[6], OWN_WEIGHTS[1])


SUMS = torch.full((len(STATISTICS_WEIGHTS), len(OWN_WEIGHTS)), 1.5, dtype=torch.double)


@pytest.mark.parametrize(
    "sums",
    [SUMS.float(), SUMS[:-1], SUMS[:, :1], SUMS.flatten(), SUMS - 2, SUMS + 1, SUMS * torch.nan, SUMS * torch.inf],
)
def test_sums_that_are_not_possible_are_refused(sums: Tensor) -> None:
    BOTH.check(SUMS, 3)
    with pytest.raises(ValueError, match="not possible"):
        BOTH.check(sums, 3)


def test_sums_do_not_belong_to_given_weights() -> None:
    with pytest.raises(ValueError, match="not possible"):
        CandidateWeights.of(0.1, 0.1).check(torch.zeros(1, 1, dtype=torch.double), 3)
