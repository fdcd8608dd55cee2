"""The classes seen so far."""

import math

import pytest
import torch

from spacenet.errors import RunError
from spacenet.methods.density.densities import Densities, scores
from tests.methods.density.support import SHRINKAGE, rng, some


def test_samples_of_several_classes_come_in_the_features_own_scale() -> None:
    for whiten in (False, True):
        known, y = Densities(1, 6, 0.5, whiten=whiten), torch.arange(4000) % 2
        h = some(4000) + 7.0 * y[:, None]
        known.add(h, y, range(2), rng())
        drawn = known.sample(3000, rng(2)).view(2, 3000, 6)
        for number in (0, 1):
            torch.testing.assert_close(drawn[number].mean(0), h[y == number].mean(0), atol=0.2, rtol=0)
            torch.testing.assert_close(torch.cov(drawn[number].T), torch.cov(h[y == number].T), atol=0.8, rtol=0)


def test_what_was_entered_once_never_changes() -> None:
    """The statistics of old classes and the scale keep every bit when classes are added."""
    known = Densities(2, 3, 0.5, whiten=True)
    before: dict[str, torch.Tensor] = {}
    for task in range(3):
        h, y = some(80, seed=task).relu(), torch.arange(80) % 2 + 2 * task
        known.add(h, y, range(2 * task, 2 * task + 2), rng(task))
        now = known.tensors()
        for name, tensor in before.items():
            assert torch.equal(now[name][: len(tensor)] if name.startswith("classes") else now[name], tensor), name
        before = {name: tensor.clone() for name, tensor in now.items()}
    again = Densities(2, 3, 0.5, whiten=True)
    again.load(before)
    at = some(7, seed=9)
    assert torch.equal(scores(again.compute_params(), at), scores(known.compute_params(), at))
    assert len(again) == 6


def test_truncated_densities_score_with_the_first_directions_and_leave_the_others_alone() -> None:
    known, h, y = Densities(1, 6, SHRINKAGE, whiten=False), some(200), torch.arange(200) % 2
    h = h + 0.5 * y[:, None]
    known.add(h, y, range(2), rng())
    before = scores(known.compute_params(), h)
    assert torch.equal(scores(known.truncate(6).compute_params(), h), before)
    means_only = scores(known.truncate(0).compute_params(), h)
    assert known.scaling is not None
    z = known.scaling.scale(h)
    means = torch.stack([z[y == number].mean(0) for number in (0, 1)])
    away = -(z[:, None] - means).square().sum(-1) / (2 * SHRINKAGE)  # with the identity as every covariance
    torch.testing.assert_close(means_only.diff(), away.diff(), rtol=1e-3, atol=1e-3)
    assert (known.truncate(2).directions, known.directions) == (2, 6)
    assert torch.equal(scores(known.compute_params(), h), before)


@pytest.mark.parametrize("value", [1e20, math.inf, math.nan])
def test_features_that_cannot_be_computed_with_are_an_error(value: float) -> None:
    known, y = Densities(2, 3, 0.5, whiten=False), torch.arange(80) % 2
    known.add(some(80), y, range(2), rng())
    with pytest.raises(RunError, match="statistics of a class cannot be computed"):
        known.add(some(80) * value, y + 2, range(2, 4), rng())
    assert len(known) == 2
