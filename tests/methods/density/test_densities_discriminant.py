"""How well samples fit each class."""

import math

import torch
from torch.distributions import MultivariateNormal

from spacenet.methods.density.densities import Densities, scores
from spacenet.methods.density.scaling import Scaling
from spacenet.methods.density.statistics import ClassStatistics
from tests.methods.density.support import SHRINKAGE, rng, some

AS_IS = Scaling(torch.zeros(6), torch.ones(()))


def compute_params(classes: ClassStatistics, scaling: Scaling, shrinkage: float) -> dict[str, torch.Tensor]:
    return Densities(1, 6, shrinkage, whiten=False, scaling=scaling, classes=classes).compute_params()


def test_the_score_is_the_logarithm_of_the_mixed_density() -> None:
    """With all directions kept, against torch's own Gaussian."""
    z, at = some(), some(5, seed=3)
    concat = ClassStatistics.concat(
        None, [ClassStatistics.fit(z, 1, 6, rng()), ClassStatistics.fit(z * 0.5 - 2, 1, 6, rng())]
    )
    found = scores(compute_params(concat, AS_IS, SHRINKAGE), at)
    for number, each in enumerate((z, z * 0.5 - 2)):
        mixed = (1 - SHRINKAGE) * torch.cov(each.T, correction=0) + SHRINKAGE * torch.eye(6)
        expected = MultivariateNormal(each.mean(0), mixed).log_prob(at)
        # The same for all classes, so left out.
        common = 3 * math.log(2 * math.pi * SHRINKAGE) + at.square().sum(1) / (2 * SHRINKAGE)
        torch.testing.assert_close(found[:, number], expected + common, rtol=1e-3, atol=1e-3)


def test_several_gaussians_add_up() -> None:
    heaps = torch.cat([some(30), some(50) + 40])
    statistics = ClassStatistics.concat(None, [ClassStatistics.fit(heaps, 2, 6, rng())])
    weights = statistics.weight[0].exp().sort().values
    torch.testing.assert_close(weights, torch.tensor([30 / 80, 50 / 80]))
    values = compute_params(statistics, AS_IS, SHRINKAGE)
    alone = [
        ClassStatistics.concat(None, [ClassStatistics.fit(part, 1, 6, rng())]) for part in (heaps[:30], heaps[30:])
    ]
    each = [scores(compute_params(one, AS_IS, SHRINKAGE), heaps[:3]) for one in alone]
    parts = torch.cat(each, 1) + torch.tensor([30 / 80, 50 / 80]).log()
    together = torch.logsumexp(parts, 1)
    torch.testing.assert_close(scores(values, heaps[:3])[:, 0], together, rtol=1e-3, atol=1e-3)


def test_a_class_of_few_samples_has_a_density_too() -> None:
    for count in (1, 2, 3):
        statistics = ClassStatistics.concat(
            None, [ClassStatistics.fit(some(count), 2, 4, rng()), ClassStatistics.fit(some(), 2, 4, rng())]
        )
        found = scores(compute_params(statistics, AS_IS, SHRINKAGE), some(4))
        assert bool(found.isfinite().all())


def test_the_scale_of_features_is_part_of_the_matrices() -> None:
    """Whether features are scaled first, or the compute_params take them as they are, the scores are the same."""
    h, y = some(80) + 4.0, torch.arange(80) % 2
    for whiten in (False, True):
        scaling = Scaling.fit(h, y, whiten=whiten)
        z = scaling.scale(h)
        classes = ClassStatistics.concat(None, [ClassStatistics.fit(z[y == number], 2, 3, rng()) for number in (0, 1)])
        found = scores(compute_params(classes, scaling, SHRINKAGE), h)
        torch.testing.assert_close(found, scores(compute_params(classes, AS_IS, SHRINKAGE), z), rtol=1e-4, atol=1e-4)
