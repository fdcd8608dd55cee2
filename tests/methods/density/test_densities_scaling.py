"""A common scale for features."""

import torch

from spacenet.methods.density.scaling import Scaling
from spacenet.methods.shared.class_statistics import pool_roots
from tests.methods.density.support import rng, some


def test_the_first_tasks_classes_are_about_round_when_whitened() -> None:
    y = torch.arange(3000) % 2
    h = some(3000) @ torch.rand(6, 6, generator=rng()) + 4.0 * y[:, None]
    z = Scaling.fit(h, y, whiten=True).scale(h)
    within = sum(torch.cov(z[y == number].T) for number in (0, 1)) / 2
    largest = torch.linalg.eigvalsh(within)
    assert 0.9 < float(largest[-1]) < 1.05
    one = Scaling.fit(h, y, whiten=False).scale(h)
    variance = sum(float(one[y == number].var(0).mean()) for number in (0, 1)) / 2
    assert abs(variance - 1) < 0.01


def test_samples_that_do_not_vary_are_only_moved() -> None:
    scaling = Scaling.fit(torch.full((4, 3), 2.0), torch.zeros(4), whiten=True)
    assert torch.equal(scaling.scale(torch.full((1, 3), 5.0)), torch.full((1, 3), 3.0))


def test_maps_are_seen_on_a_coarse_grid() -> None:
    maps = torch.arange(16.0).view(1, 1, 4, 4) - 2.0
    expected = torch.tensor([[0.5, 2.5, 8.5, 10.5]]).sqrt()
    torch.testing.assert_close(pool_roots(maps, 2), expected)
    assert torch.equal(pool_roots(torch.tensor([[-1.0, 9.0]]), 2), torch.tensor([[0.0, 3.0]]))


def test_half_of_the_whitening_matrix_is_kept_and_all_of_it_comes_back() -> None:
    h, y = some(500), torch.arange(500) % 2
    scaling = Scaling.fit(h, y, whiten=True)
    kept = scaling.tensors()
    assert kept["factor"].shape == (6 * 7 / 2,)
    assert torch.equal(Scaling.load(kept).factor, scaling.factor)
    Scaling.check(kept, 6, whiten=True)
