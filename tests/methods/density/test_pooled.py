"""Class statistics relative to the covariance of all classes."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.distributions import MultivariateNormal

from spacenet.errors import RunError
from spacenet.methods.density import pooled
from spacenet.methods.density.densities import scores
from spacenet.methods.density.pooled import LEAST_RIDGE, MOST_RIDGE, PooledDensities, Whitening
from tests.methods.density.support import rng, some

SHRINKAGE, WIDTH = 0.8, 6


def labeled(classes: int = 6, each: int = 40, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Samples of classes whose means differ, in random order."""
    generator = rng(seed)
    y = torch.arange(classes).repeat(each)[torch.randperm(classes * each, generator=generator)]
    means = 2.0 * torch.randn(classes, WIDTH, generator=generator)
    return some(len(y), seed=seed) + means[y], y


def learned(
    h: Tensor, y: Tensor, cuts: list[int], directions: int = 2, shrinkage: float = SHRINKAGE
) -> PooledDensities:
    """Statistics of classes in tasks of these sizes."""
    known, first = PooledDensities(1, directions, shrinkage, whiten=True), 0
    for number, classes in enumerate(cuts):
        task = range(first, first + classes)
        rows = (y >= task.start) & (y < task.stop)
        known.add(h[rows], y[rows], task, rng(number))
        first = task.stop
    return known


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 3), min_size=2, max_size=4), st.integers(0, 5))
def test_what_all_classes_share_does_not_depend_on_the_tasks(cuts: list[int], seed: int) -> None:
    h, y = labeled(sum(cuts), seed=seed)
    parts, whole = learned(h, y, cuts).tensors(), learned(h, y, [sum(cuts)]).tensors()
    for name in ("pooled/covariance", "pooled/samples", "classes/mean"):
        torch.testing.assert_close(parts[name], whole[name], rtol=1e-4, atol=1e-5)


def test_with_all_directions_densities_are_those_of_gaussians() -> None:
    """The covariance of a class is a mixture of the common one, with its ridge, and its own."""
    h, y = labeled()
    known = learned(h, y, [3, 3], directions=WIDTH)
    assert known.covariance is not None
    ridge = max(LEAST_RIDGE, pooled.RIDGE * WIDTH / len(h)) * known.covariance.diagonal().mean()
    common = known.covariance + ridge * torch.eye(WIDTH)
    found = scores(known.compute_params(), h)
    expected = []
    for number in range(6):
        own = h[y == number]
        covariance = SHRINKAGE * common + (1 - SHRINKAGE) * torch.cov(own.T, correction=0)
        expected.append(MultivariateNormal(own.mean(0), covariance).log_prob(h))
    exact = torch.stack(expected, 1)
    torch.testing.assert_close(found.diff(), exact.diff(), rtol=5e-3, atol=5e-2)  # directions are kept in 16 bits


def test_with_shrinkage_alone_they_are_linear_discriminants() -> None:
    h, y = labeled()
    known = learned(h, y, [2, 2, 2], shrinkage=1.0)
    assert known.scaling is not None
    z, means = known.scaling.scale(h), known.scaling.scale(torch.stack([h[y == n].mean(0) for n in range(6)]))
    expected = -torch.cdist(z, means).square() / 2
    torch.testing.assert_close(scores(known.compute_params(), h).diff(), expected.diff(), rtol=1e-3, atol=1e-3)


def test_few_samples_lean_on_the_ridge() -> None:
    h, y = labeled(each=2)
    many = Whitening.fit(torch.eye(WIDTH), 1e6, torch.zeros(WIDTH)).root
    few = learned(h, y, [6]).scaling
    assert isinstance(few, Whitening)
    spread = few.root.diagonal()
    assert float(spread.max() / spread.min()) < 3
    torch.testing.assert_close(many, math.sqrt(1 + LEAST_RIDGE) * torch.eye(WIDTH))


def test_the_ridge_is_bounded() -> None:
    one = Whitening.fit(torch.eye(WIDTH), 1, torch.zeros(WIDTH)).root
    torch.testing.assert_close(one, math.sqrt(1 + MOST_RIDGE) * torch.eye(WIDTH))


def test_the_number_of_threads_changes_nothing() -> None:
    """A model learns on one thread and is loaded on more."""
    h, y = some(300, 400, seed=5), torch.arange(300) % 3
    found, before = [], torch.get_num_threads()
    for threads in (1, 4):
        torch.set_num_threads(threads)
        known = PooledDensities(1, 8, SHRINKAGE, whiten=True)
        known.add(h, y, range(3), rng())
        again = PooledDensities(1, 8, SHRINKAGE, whiten=True)
        again.load(known.tensors())
        found += [known.compute_params(), again.compute_params()]
        assert torch.get_num_threads() == threads
    torch.set_num_threads(before)
    assert all(torch.equal(params[name], each) for params in found for name, each in found[0].items())


def test_one_sample_of_each_class_is_enough() -> None:
    h = some(4) * 5
    known = learned(h, torch.arange(4), [1, 1, 2])
    assert scores(known.compute_params(), h).argmax(1).tolist() == [0, 1, 2, 3]


def test_scaling_and_its_inverse() -> None:
    h, y = labeled()
    scaling = learned(h, y, [6]).scaling
    assert isinstance(scaling, Whitening)
    torch.testing.assert_close(scaling.unscale(scaling.scale(h)), h, rtol=1e-4, atol=1e-4)
    weight = some(3, seed=4)
    direct = scaling.scale(h) @ weight.T
    folded = (h - scaling.mean).double() @ scaling.fold_into(weight).T
    torch.testing.assert_close(folded.float(), direct, rtol=1e-4, atol=1e-4)


def test_what_is_kept_gives_the_same_bits_again() -> None:
    h, y = labeled()
    known, again = learned(h, y, [3, 3]), PooledDensities(1, 2, SHRINKAGE, whiten=True)
    again.load(known.tensors())
    again.check(known.tensors(), 6, WIDTH)
    assert torch.equal(scores(again.compute_params(), h), scores(known.compute_params(), h))
    for densities in (known, again):  # the next task too
        more, labels = labeled(2, seed=3)
        densities.add(more, labels + 6, range(6, 8), rng(9))
    for name, tensor in known.tensors().items():
        assert torch.equal(again.tensors()[name], tensor), name
    again.load({})
    assert len(again) == 0
    assert not again.tensors()


def test_old_means_and_directions_stay() -> None:
    h, y = labeled()
    known = learned(h, y, [6])
    before = {name: tensor.clone() for name, tensor in known.tensors().items()}
    more, labels = labeled(2, seed=3)
    known.add(more * 9, labels + 6, range(6, 8), rng(9))
    for name in ("classes/mean", "classes/factor"):
        assert torch.equal(known.tensors()[name][:6], before[name])


def test_the_scale_can_be_kept_without_the_classes() -> None:
    h, y = labeled()
    known = learned(h, y, [6])
    empty = known.without_classes()
    assert len(empty) == 0
    empty.add(h, y, range(6), rng())
    assert len(known) == len(empty) == 6
    assert empty.samples == 2 * known.samples


@pytest.mark.parametrize("value", [1e20, math.inf, math.nan])
def test_features_that_cannot_be_computed_with_are_an_error(value: float) -> None:
    h, y = labeled(2)
    known = learned(h, y, [2])
    before = known.tensors()
    with pytest.raises(RunError, match="statistics of a class cannot be computed"):
        known.add(h * value, y + 2, range(2, 4), rng())
    assert all(torch.equal(known.tensors()[name], tensor) for name, tensor in before.items())


def test_too_many_features(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pooled, "MAX_DIMENSIONS", WIDTH - 1)
    with pytest.raises(RunError, match="covariance of 6 features is too large; at most 5"):
        learned(*labeled(2), [2])


def tampered(name: str, value: Tensor | None) -> dict[str, Tensor]:
    tensors = learned(*labeled(), [6]).tensors()
    return {key: tensor for key, tensor in (tensors | {name: value}).items() if tensor is not None}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("pooled/covariance", None),
        ("pooled/covariance", -torch.ones(WIDTH * (WIDTH + 1) // 2)),
        ("pooled/covariance", torch.full((WIDTH * (WIDTH + 1) // 2,), math.nan)),
        ("pooled/samples", torch.tensor(0.0)),
        ("pooled/samples", torch.tensor(math.nan)),
        ("pooled/origin", None),
        ("pooled/origin", torch.full((WIDTH,), math.nan)),
        ("pooled/origin", torch.full((WIDTH,), 1e30)),
        ("pooled/more", torch.ones(1)),
        ("classes/mean", torch.ones(5, WIDTH)),
        ("classes/mean", torch.full((6, WIDTH), 1e30)),
        ("classes/factor", None),
        ("classes/factor", torch.ones(6, 2, WIDTH)),
        ("classes/factor", torch.full((6, 2, WIDTH), math.inf).half()),
        ("other/mean", torch.ones(1)),
    ],
)
def test_what_cannot_be_statistics_is_refused(name: str, value: Tensor | None) -> None:
    with pytest.raises(ValueError, match=r"class statistics|unknown content"):
        PooledDensities(1, 2, SHRINKAGE, whiten=True).check(tampered(name, value), 6, WIDTH)
