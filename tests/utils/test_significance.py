"""Tests of differences between figures."""

import pytest
from scipy import stats

from spacenet.utils.significance import find_best, paired_p, seeds_p, welch_p
from spacenet.utils.text import MeanStd

FIRST = [78.1, 79.4, 75.2, 80.3, 77.7]
SECOND = [74.0, 78.8, 73.1, 77.5, 78.0]


def seeds(values: list[float]) -> dict[int, float]:
    return dict(enumerate(values))


def test_pairs_are_of_the_same_seed() -> None:
    expected = stats.ttest_rel(FIRST, SECOND).pvalue
    assert paired_p(seeds(FIRST), seeds(SECOND)) == pytest.approx(expected)
    turned = dict(reversed(seeds(SECOND).items()))
    assert paired_p(seeds(FIRST), {**turned, 99: 1.0}) == pytest.approx(expected)
    assert paired_p(seeds(FIRST), {0: 1.0, 1: 2.0, 99: 3.0}) is None


def test_without_pairs_standard_deviations_and_numbers_of_seeds_are_enough() -> None:
    expected = stats.ttest_ind(FIRST, SECOND[:3], equal_var=False).pvalue
    assert welch_p(MeanStd.of(FIRST), 5, MeanStd.of(SECOND[:3]), 3) == pytest.approx(expected)
    assert welch_p(MeanStd(1.0), 1, MeanStd.of(SECOND), 5) is None


@pytest.mark.parametrize(("other", "p"), [(50.0, 1.0), (51.0, 0.0)])
def test_constant_differences(other: float, p: float) -> None:
    assert paired_p(seeds([50.0] * 3), seeds([other] * 3)) == p
    assert welch_p(MeanStd(50.0, 0.0), 3, MeanStd(other, 0.0), 3) == p


def test_the_best_are_all_that_do_not_differ_significantly() -> None:
    near = [value + 0.1 * (-1) ** number for number, value in enumerate(FIRST)]
    figures = {"low": seeds(SECOND[:1] * 5), "near": seeds(near), "best": seeds([value + 0.05 for value in FIRST])}
    assert find_best(figures) == ["best", "near"]
    assert find_best({"best": figures["best"], "low": figures["low"]}) == ["best"]


def test_seeds_that_one_of_two_lacks_count_too() -> None:
    """Paired over three common seeds alone, a difference of many standard deviations may not be significant."""
    first, second = seeds([88.0, 90.0, 87.9, 89.0, 88.9, 89.1, 89.0, 88.8]), seeds([85.0, 88.0, 83.9])
    expected = stats.ttest_ind(list(first.values()), list(second.values()), equal_var=False).pvalue
    assert seeds_p(first, second) == pytest.approx(expected)
    assert seeds_p(first, first) == paired_p(first, first)
    assert seeds_p(first, {0: 85.0, 1: 86.0}) is None


def test_few_seeds_have_no_best() -> None:
    assert find_best({}) == find_best({"alone": seeds(FIRST)}) == []
    assert find_best({"first": seeds(FIRST), "second": seeds(SECOND[:2])}) == []
