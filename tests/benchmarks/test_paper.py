"""Whether our figures agree with the paper's is said in both directions."""

import pytest

from benchmarks.paper import compare_with_paper
from spacenet.utils.text import MeanStd

PAPER = {"acc": [61.25, 2.30], "bwt": [-29.32, 2.80]}


@pytest.mark.parametrize(
    ("acc", "bwt", "said"),
    [
        ((75.0, 2.0), (-10.0, 3.0), "ACC 13.8 above, BWT 19.3 above"),
        ((61.5, 2.0), (-29.0, 3.0), "both agree"),
        ((63.0, 5.0), (-35.0, 3.0), "ACC 1.8 above (not significant), BWT 5.7 below"),
        ((57.25, 1.0), (-33.32, 1.0), "both 4.0 below"),
    ],
)
def test_each_figure_is_above_below_or_agrees(acc: tuple[float, float], bwt: tuple[float, float], said: str) -> None:
    assert compare_with_paper({"acc": MeanStd(*acc), "bwt": MeanStd(*bwt)}, 10, PAPER) == said


def test_a_side_without_standard_deviation_counts_with_the_others() -> None:
    ours = {"acc": MeanStd(52.0, 3.0), "bwt": MeanStd(-10.0)}
    assert compare_with_paper(ours, 3, {"acc": [50.0]}) == "ACC 2.0 above (not significant)"
    assert compare_with_paper(ours, 300, {"acc": [50.0], "seeds": 300}) == "ACC 2.0 above"
    assert compare_with_paper(ours, 1, {"bwt": [-12.0, 0.1]}) == "BWT 2.0 above"
    assert compare_with_paper(ours, 1, {"bwt": [-12.0]}) == "BWT 2.0 above"
    assert compare_with_paper(ours, 1, {}) == ""


def test_a_difference_below_a_point_agrees_however_small_the_standard_deviations_are() -> None:
    assert compare_with_paper({"acc": MeanStd(20.3, 0.01)}, 10, {"acc": [20.0, 0.01]}) == "ACC agrees"
