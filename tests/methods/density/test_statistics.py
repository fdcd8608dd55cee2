"""What is kept of a class."""

import torch

from spacenet.methods.density.statistics import ClassStatistics, count_floats
from tests.methods.density.support import rng, some


def test_mean_and_leading_directions_are_those_of_the_covariance() -> None:
    z = some()
    statistics = ClassStatistics.fit(z, 1, 3, rng())
    values, vectors = torch.linalg.eigh(torch.cov(z.T, correction=0))
    torch.testing.assert_close(statistics.mean[0], z.mean(0))
    torch.testing.assert_close(statistics.variance[0], values.flip(0)[:3], rtol=1e-4, atol=1e-4)
    alike = (statistics.direction[0] @ vectors.flip(1)[:, :3]).abs()
    torch.testing.assert_close(alike, torch.eye(3), rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(statistics.rest[0], values[:3].mean(), rtol=1e-3, atol=1e-3)


def test_its_size_is_as_said() -> None:
    statistics = ClassStatistics.fit(some(), 2, 3, rng())
    assert sum(part.numel() for part in statistics.tensors().values()) == count_floats(2, 3, 6)
    assert count_floats(2, 19, 392) <= 16_464  # the default on the edges of 28 × 28 pixels


def test_samples_have_the_mean_and_the_leading_variances() -> None:
    z = some(4000)
    drawn = ClassStatistics.fit(z, 1, 6, rng()).sample(20_000, rng(1))
    torch.testing.assert_close(drawn.mean(0), z.mean(0), atol=0.1, rtol=0)
    torch.testing.assert_close(torch.cov(drawn.T), torch.cov(z.T), atol=0.3, rtol=0)
    few = ClassStatistics.fit(z, 1, 2, rng()).sample(1000, rng(1))
    assert int((torch.linalg.eigvalsh(torch.cov(few.T)) > 1e-3).sum()) == 2


def test_truncated_statistics_are_those_of_fewer_directions() -> None:
    for count in (60, 4):  # of 4 samples there are but 3 directions
        z = some(count)
        whole = ClassStatistics.fit(z, 1, 6, rng())
        for directions in (0, 1, 2, 5):
            thin, expected = whole.truncate(directions), ClassStatistics.fit(z, 1, directions, rng())
            assert thin.direction.shape == (1, directions, 6)
            for name in ("weight", "mean", "variance", "rest"):
                found, wanted = getattr(thin, name), getattr(expected, name)
                torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-3, msg=f"{name} of {directions}")
            assert sum(part.numel() for part in thin.tensors().values()) == count_floats(1, directions, 6)
