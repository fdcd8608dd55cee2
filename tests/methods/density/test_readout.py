"""A linear classifier on random features, computed in closed form."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spacenet.methods.density.readout import (
    FACTOR,
    RIDGE,
    Readout,
    draw_projection,
    random_features,
    readout_scores,
)
from spacenet.methods.density.scaling import Scaling
from tests.methods.density.support import some

SIZE = 30
Y = torch.arange(200) % 4
H = some(200) + 6.0 * torch.eye(6)[Y]
SCALING = Scaling.fit(H, Y, whiten=False)


def readout_of(tasks: list[range], seed: int = 0) -> Readout:
    made = Readout(SIZE, seed)
    for classes in tasks:
        own = (classes.start <= Y) & (classes.stop > Y)
        made.add(H[own], Y[own], classes, SCALING)
    return made


def test_it_is_the_ridge_regression_on_all_samples() -> None:
    made = readout_of([range(2), range(2, 4)])
    params = made.compute_params(SCALING)
    features = random_features(params, H).double()
    gram = features.T @ features
    target = torch.nn.functional.one_hot(Y, 4).double()
    ridge = RIDGE * gram.diagonal().mean() * torch.eye(SIZE, dtype=torch.double)
    expected = features @ torch.linalg.solve(gram + ridge, features.T @ target) * FACTOR
    torch.testing.assert_close(readout_scores(params, H).double(), expected, atol=0.02, rtol=0)
    assert float((readout_scores(params, H).argmax(1) == Y).double().mean()) > 0.8


@given(st.sets(st.integers(1, 3)))
def test_tasks_may_be_cut_anywhere(cuts: set[int]) -> None:
    """Up to the rounding of sums."""
    edges = [0, *sorted(cuts), 4]
    made = readout_of([range(a, b) for a, b in pairwise(edges)])
    whole = readout_of([range(4)])
    found, expected = (readout_scores(each.compute_params(SCALING), H) for each in (made, whole))
    torch.testing.assert_close(found, expected, atol=0.02, rtol=0)


def test_it_comes_back_from_its_tensors_and_its_seed() -> None:
    made, back = readout_of([range(4)]), Readout(SIZE, 0)
    made.check(made.tensors(), 4)
    back.load(made.tensors())
    expected = made.compute_params(SCALING)
    assert all(torch.equal(expected[name], value) for name, value in back.compute_params(SCALING).items())
    assert not torch.equal(draw_projection(SIZE, 6, None, 0), draw_projection(SIZE, 6, None, 1))


@pytest.mark.parametrize("name", ["correlations", "sums"])
def test_impossible_tensors_are_refused(name: str) -> None:
    made = readout_of([range(4)])
    for value in (float("nan"), -1.0):
        spoiled = made.tensors() | {name: made.tensors()[name].index_fill(0, torch.tensor([0]), value)}
        with pytest.raises(ValueError, match="the readout"):
            made.check(spoiled, 4)
    with pytest.raises(ValueError, match="wrong size"):
        made.check(made.tensors(), 5)


def test_each_random_feature_of_an_image_sees_a_window() -> None:
    drawn = draw_projection(50, 2 * 5 * 4, (5, 4), 0).view(50, 2, 5, 4) != 0
    for both in drawn:
        seen = both[0]
        assert torch.equal(seen, both[1])  # the same window of every channel
        down, across = seen.any(1), seen.any(0)
        assert torch.equal(seen, down[:, None] & across[None, :])
        for side in (down, across):
            where = side.nonzero()[:, 0]
            assert len(where) >= 2
            assert int(where[-1] - where[0]) + 1 == len(where)
    assert len(set(drawn[:, 0].flatten(1).sum(1).tolist())) > 5
