"""More samples of known classes: exact where moments are kept, otherwise as good as what is kept allows."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from spacenet.methods.density.densities import Densities
from spacenet.methods.density.moments import Moments, measure_parts
from spacenet.methods.density.pooled import PooledDensities
from spacenet.utils.tensors import symmetric_matrix
from tests.methods.density.support import rng, some

CLASSES = range(3)


def mixed(count: int, seed: int = 0, features: int = 6) -> tuple[Tensor, Tensor]:
    y = torch.arange(count) % len(CLASSES)
    return some(count, features, seed) * torch.linspace(0.2, 3.0, features) + 2.0 * y[:, None], y


def densities(**given: object) -> Densities:
    return Densities(1, 3, 0.5, **{"whiten": False, "updatable": True, "exact": True, **given})  # type: ignore[arg-type]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=8), st.integers(0, 5), st.booleans())
def test_however_samples_are_cut_into_calls_the_statistics_are_those_of_one(
    sizes: list[int], seed: int, whiten: bool
) -> None:
    h, y = mixed(9 + sum(sizes), seed)
    once, often = densities(whiten=whiten), densities(whiten=whiten)
    once.add(h, y, CLASSES, rng())
    often.add(h[:9], y[:9], CLASSES, rng())
    start = 9
    for size in sizes:
        often.update(h[start : start + size], y[start : start + size], len(CLASSES))
        start += size
    for name, tensor in once.tensors().items():
        if not name.endswith("direction"):  # these may have the other sign
            torch.testing.assert_close(often.tensors()[name], tensor, rtol=1e-4, atol=1e-4, msg=name)
    for mine, right in zip(often.split_moments(), once.split_moments(), strict=True):
        torch.testing.assert_close(mine.scatter, right.scatter, rtol=1e-11, atol=1e-10)
    torch.testing.assert_close(often.evaluate(h), once.evaluate(h), rtol=1e-3, atol=2e-3)


def test_a_weight_counts_like_so_many_samples() -> None:
    h, y = mixed(60)
    weight = (torch.arange(60) % 4 + 1).float()
    repeated = torch.arange(60).repeat_interleave(weight.long())
    for one, other in (
        (densities(), densities()),
        (densities(exact=False), densities(exact=False)),
        *[
            (
                PooledDensities(1, 3, 0.9, whiten=True, updatable=True),
                PooledDensities(1, 3, 0.9, whiten=True, updatable=True),
            )
        ],
    ):
        one.add(h[:30], y[:30], CLASSES, rng(), weight[:30])
        one.update(h[30:], y[30:], len(CLASSES), weight[30:])
        first = repeated[repeated < 30]
        other.add(h[first], y[first], CLASSES, rng())
        last = repeated[repeated >= 30]
        other.update(h[last], y[last], len(CLASSES))
        assert one.counts is not None
        torch.testing.assert_close(one.counts, other.counts)
        torch.testing.assert_close(one.evaluate(h), other.evaluate(h), rtol=1e-3, atol=5e-3)


def test_of_several_gaussians_the_class_has_the_moments_of_all_its_samples() -> None:
    known, (h, y) = densities(), mixed(200)
    known.components = 2
    known.add(h[:100], y[:100], CLASSES, rng())
    known.update(h[100:], y[100:], len(CLASSES))
    for number, found in enumerate(known.split_moments()):
        assert len(found) == 2
        right = Moments.measure(h[y == number])
        torch.testing.assert_close(found.merge().mean, right.mean)
        torch.testing.assert_close(found.merge().scatter, right.scatter)


def test_without_moments_means_and_total_variances_are_exact_and_directions_close() -> None:
    known, right, (h, y) = densities(exact=False), densities(exact=False), mixed(400)
    right.add(h, y, CLASSES, rng())
    known.add(h[:100], y[:100], CLASSES, rng())
    known.update(h[100:250], y[100:250], len(CLASSES))
    known.update(h[250:], y[250:], len(CLASSES))
    assert known.scaling is not None
    assert known.classes is not None
    assert known.moments is None
    z = known.scaling.scale(h)
    for number in CLASSES:
        own, mine = z[y == number], known.classes.split()[number]
        torch.testing.assert_close(mine.mean[0], own.mean(0), atol=1e-4, rtol=0)
        total = mine.variance.sum() + 3 * mine.rest[0]
        torch.testing.assert_close(total, own.var(0, correction=0).sum(), rtol=1e-3, atol=0)
        best = torch.linalg.eigvalsh(torch.cov(own.T, correction=0)).flip(0)[:3]
        torch.testing.assert_close(mine.variance[0], best, rtol=0.1, atol=0)


def test_a_pooled_covariance_and_means_are_exact() -> None:
    (h, y), made = mixed(300), [PooledDensities(1, 3, 0.9, whiten=True, updatable=True) for _ in range(2)]
    made[0].add(h, y, CLASSES, rng())
    made[1].add(h[:60], y[:60], CLASSES, rng())
    for start in range(60, 300, 40):
        made[1].update(h[start : start + 40], y[start : start + 40], len(CLASSES))
    one, other = made
    assert one.samples == other.samples
    for name in ("means", "covariance", "counts"):
        torch.testing.assert_close(getattr(other, name), getattr(one, name), rtol=1e-4, atol=1e-4)
    agree = (one.evaluate(h).argmax(1) == other.evaluate(h).argmax(1)).float().mean()
    assert agree > 0.97


@pytest.mark.parametrize("exact", [True, False])
def test_other_classes_keep_every_bit_unless_the_scale_follows(exact: bool) -> None:
    known, (h, y) = densities(exact=exact), mixed(90)
    known.add(h, y, CLASSES, rng())
    known.add(h + 5, y + 3, range(3, 6), rng())
    before = {name: tensor.clone() for name, tensor in known.tensors().items()}
    known.update(h[y == 1] + 5, y[y == 1] + 3, len(CLASSES))  # class 4, of the second task
    now = known.tensors()
    for name in ("scaling/mean", "scaling/factor"):
        assert torch.equal(now[name], before[name])
    others = torch.tensor([0, 1, 2, 3, 5])
    for name in ("counts", *(f"classes/{each}" for each in ("mean", "variance", "direction", "rest"))):
        assert torch.equal(now[name][others], before[name][others]), name
    assert now["counts"][4] == 60
    again = densities(exact=exact)
    again.load(now)
    assert torch.equal(again.evaluate(h), known.evaluate(h))


def test_what_is_kept_of_removed_classes_goes() -> None:
    known, (h, y) = densities(), mixed(90)
    known.add(h, y, CLASSES, rng())
    right = known.split_moments()[2]
    known.keep(torch.tensor([0, 2]))
    assert known.counts is not None
    assert known.counts.tolist() == [30, 30]
    assert torch.equal(known.split_moments()[1].scatter, right.scatter)


def test_parts_are_measured_apart() -> None:
    h = some(50, 4)
    member = torch.arange(50) % 2
    found = measure_parts(h, member)
    torch.testing.assert_close(found.mean[1].float(), h[1::2].mean(0))
    covariance = symmetric_matrix(found.scatter[0]) / found.count[0]
    torch.testing.assert_close(covariance.float(), torch.cov(h[::2].T, correction=0), rtol=1e-4, atol=1e-5)
