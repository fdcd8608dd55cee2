"""What is kept of a class, and how it is compared."""

import math

import torch
from torch.distributions import MultivariateNormal

from spacenet.density import discriminant
from spacenet.density.densities import Densities, scores
from spacenet.density.scaling import Scaling, pooled_roots, scaled
from spacenet.density.summary import Summary, floats_of

SHRINKAGE = 0.4


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def some(count: int = 60, dimensions: int = 6, seed: int = 0) -> torch.Tensor:
    stretched = torch.linspace(3.0, 0.3, dimensions)
    return torch.randn(count, dimensions, generator=rng(seed)) * stretched + 1.5


def test_mean_and_leading_directions_are_those_of_the_covariance() -> None:
    z = some()
    summary = Summary.of(z, 1, 3, rng())
    values, vectors = torch.linalg.eigh(torch.cov(z.T, correction=0))
    torch.testing.assert_close(summary.mean[0], z.mean(0))
    torch.testing.assert_close(summary.spread[0], values.flip(0)[:3], rtol=1e-4, atol=1e-4)
    alike = (summary.direction[0] @ vectors.flip(1)[:, :3]).abs()
    torch.testing.assert_close(alike, torch.eye(3), rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(summary.rest[0], values[:3].mean(), rtol=1e-3, atol=1e-3)


def test_its_size_is_as_said() -> None:
    summary = Summary.of(some(), 2, 3, rng())
    assert sum(part.numel() for part in summary.tensors().values()) == floats_of(2, 3, 6)
    assert floats_of(2, 19, 392) <= 16_464  # the default on the edges of 28 × 28 pixels


def test_the_score_is_the_logarithm_of_the_mixed_density() -> None:
    """With all directions kept, against torch's own Gaussian."""
    z, at = some(), some(5, seed=3)
    joined = Summary.joined(None, [Summary.of(z, 1, 6, rng()), Summary.of(z * 0.5 - 2, 1, 6, rng())])
    found = discriminant.scores(discriminant.matrices(joined, SHRINKAGE), at, SHRINKAGE)
    for number, each in enumerate((z, z * 0.5 - 2)):
        mixed = (1 - SHRINKAGE) * torch.cov(each.T, correction=0) + SHRINKAGE * torch.eye(6)
        expected = MultivariateNormal(each.mean(0), mixed).log_prob(at)
        constant = 3 * math.log(2 * math.pi) + 3 * math.log(SHRINKAGE)  # the same for all classes, so left out
        torch.testing.assert_close(found[:, number], expected + constant, rtol=1e-3, atol=1e-3)


def test_several_gaussians_add_up() -> None:
    heaps = torch.cat([some(30), some(50) + 40])
    summary = Summary.joined(None, [Summary.of(heaps, 2, 6, rng())])
    weights = summary.weight[0].exp().sort().values
    torch.testing.assert_close(weights, torch.tensor([30 / 80, 50 / 80]))
    values = discriminant.matrices(summary, SHRINKAGE)
    alone = [Summary.joined(None, [Summary.of(part, 1, 6, rng())]) for part in (heaps[:30], heaps[30:])]
    each = [discriminant.scores(discriminant.matrices(one, SHRINKAGE), heaps[:3], SHRINKAGE) for one in alone]
    parts = torch.cat(each, 1) + torch.tensor([30 / 80, 50 / 80]).log()
    together = torch.logsumexp(parts, 1)
    torch.testing.assert_close(discriminant.scores(values, heaps[:3], SHRINKAGE)[:, 0], together, rtol=1e-3, atol=1e-3)


def test_a_class_of_few_samples_has_a_density_too() -> None:
    for count in (1, 2, 3):
        summary = Summary.joined(None, [Summary.of(some(count), 2, 4, rng()), Summary.of(some(), 2, 4, rng())])
        found = discriminant.scores(discriminant.matrices(summary, SHRINKAGE), some(4), SHRINKAGE)
        assert bool(found.isfinite().all())


def test_samples_of_a_summary_have_its_mean_and_its_leading_variances() -> None:
    z = some(4000)
    drawn = Summary.of(z, 1, 6, rng()).sample(20_000, rng(1))
    torch.testing.assert_close(drawn.mean(0), z.mean(0), atol=0.1, rtol=0)
    torch.testing.assert_close(torch.cov(drawn.T), torch.cov(z.T), atol=0.3, rtol=0)
    few = Summary.of(z, 1, 2, rng()).sample(1000, rng(1))
    assert int((torch.linalg.eigvalsh(torch.cov(few.T)) > 1e-3).sum()) == 2


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
    """Old classes' summaries and the scale keep every bit as classes come."""
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
    assert torch.equal(scores(again.values(), at, 0.5), scores(known.values(), at, 0.5))
    assert len(again) == 6


def test_the_first_tasks_classes_are_about_round_when_whitened() -> None:
    y = torch.arange(3000) % 2
    h = some(3000) @ torch.rand(6, 6, generator=rng()) + 4.0 * y[:, None]
    z = scaled(Scaling.fitted(h, y, whiten=True).tensors(), h)
    within = sum(torch.cov(z[y == number].T) for number in (0, 1)) / 2
    largest = torch.linalg.eigvalsh(within)
    assert 0.9 < float(largest[-1]) < 1.05
    one = scaled(Scaling.fitted(h, y, whiten=False).tensors(), h)
    spread = sum(float(one[y == number].var(0).mean()) for number in (0, 1)) / 2
    assert abs(spread - 1) < 0.01


def test_samples_that_do_not_vary_are_only_moved() -> None:
    scaling = Scaling.fitted(torch.full((4, 3), 2.0), torch.zeros(4), whiten=True)
    assert torch.equal(scaled(scaling.tensors(), torch.full((1, 3), 5.0)), torch.full((1, 3), 3.0))


def test_maps_are_seen_on_a_coarse_grid() -> None:
    maps = torch.arange(16.0).view(1, 1, 4, 4) - 2.0
    expected = torch.tensor([[0.5, 2.5, 8.5, 10.5]]).sqrt()
    torch.testing.assert_close(pooled_roots(maps, 2), expected)
    assert torch.equal(pooled_roots(torch.tensor([[-1.0, 9.0]]), 2), torch.tensor([[0.0, 3.0]]))


def test_a_thinner_summary_is_what_so_few_directions_would_have_been() -> None:
    for count in (60, 4):  # of 4 samples there are but 3 directions
        z = some(count)
        whole = Summary.of(z, 1, 6, rng())
        for directions in (0, 1, 2, 5):
            thin, expected = whole.thinner(directions), Summary.of(z, 1, directions, rng())
            assert thin.direction.shape == (1, directions, 6)
            for name in ("weight", "mean", "spread", "rest"):
                found, wanted = getattr(thin, name), getattr(expected, name)
                torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-3, msg=f"{name} of {directions}")
            assert sum(part.numel() for part in thin.tensors().values()) == floats_of(1, directions, 6)


def test_thinner_densities_score_with_the_first_directions_and_leave_the_others_alone() -> None:
    known, h, y = Densities(1, 6, SHRINKAGE, whiten=False), some(200), torch.arange(200) % 2
    h = h + 0.5 * y[:, None]
    known.add(h, y, range(2), rng())
    before = scores(known.values(), h, SHRINKAGE)
    assert torch.equal(scores(known.thinner(6).values(), h, SHRINKAGE), before)
    means_only = scores(known.thinner(0).values(), h, SHRINKAGE)
    assert known.scaling is not None
    z = scaled(known.scaling.tensors(), h)
    means = torch.stack([z[y == number].mean(0) for number in (0, 1)])
    away = -(z[:, None] - means).square().sum(-1) / (2 * SHRINKAGE)  # with the identity as every covariance
    torch.testing.assert_close(means_only, away, rtol=1e-3, atol=1e-3)
    assert (known.thinner(2).directions, known.directions) == (2, 6)
    assert torch.equal(scores(known.values(), h, SHRINKAGE), before)
