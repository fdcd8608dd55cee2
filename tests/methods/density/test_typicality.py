"""How typical samples are of classes."""

import pytest
import torch

from spacenet.methods.density.densities import Densities
from spacenet.methods.density.typicality import (
    LEVELS,
    NUMBERS,
    Typicality,
    quantiles,
    rate_typicality,
    read_fraction,
)
from tests.methods.density.support import rng, some

TASKS = [range(2), range(2, 4)]


def samples(classes: range, each: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Samples of classes that lie apart."""
    y = torch.arange(each * len(classes)) % len(classes) + classes.start
    return some(len(y), seed=seed) + 8.0 * y[:, None] * (-1.0) ** y[:, None], y


def learned(each: int = 400) -> tuple[Densities, Typicality]:
    densities, typical = Densities(1, 3, 0.5, whiten=False), Typicality()
    for number, classes in enumerate(TASKS):
        h, y = samples(classes, each, seed=number)
        densities.add(h, y, classes, rng(number))
        typical.add(densities, h, y, classes, rng(number))
    return densities, typical


def rate(densities: Densities, typical: Typicality, h: torch.Tensor, tasks: list[range] = TASKS) -> torch.Tensor:
    return rate_typicality(typical.compute_params(tasks), densities.evaluate(h))


@pytest.mark.parametrize("wanted", [0.01, 0.05, 0.2])
def test_the_wanted_fraction_of_new_samples_is_below_a_rate_also_of_old_classes(wanted: float) -> None:
    densities, typical = learned()
    for number, classes in enumerate(TASKS):
        h, _ = samples(classes, 2000, seed=10 + number)
        below = rate(densities, typical, h) < wanted
        assert float(below.double().mean()) == pytest.approx(wanted, abs=0.02 + 0.2 * wanted)


def test_a_row_never_changes_by_later_tasks() -> None:
    h, y = samples(TASKS[0], 100)
    densities, typical = Densities(1, 3, 0.5, whiten=False), Typicality()
    densities.add(h, y, TASKS[0], rng())
    typical.add(densities, h, y, TASKS[0], rng())
    before = typical.table.clone()
    h, y = samples(TASKS[1], 100)
    densities.add(h, y, TASKS[1], rng(1))
    typical.add(densities, h, y, TASKS[1], rng(1))
    assert torch.equal(typical.table[:2], before)
    assert len(typical) == 4


def test_samples_far_away_or_too_large_are_not_typical() -> None:
    densities, typical = learned()
    for value in (100.0, 1e6, 1e15, 1e30):
        assert (rate(densities, typical, torch.full((2, 6), value)) < 1e-6).all()


@pytest.mark.parametrize("each", [1, 2, 5, 19])
def test_with_few_samples_the_threshold_is_wide(each: int) -> None:
    densities, typical = learned(each)
    Typicality.check(typical.tensors(), 4)
    h, _ = samples(TASKS[0], 500, seed=20)
    typicality = rate(densities, typical, h)
    if each > 2:
        assert float((typicality < 0.05).double().mean()) < 0.15
    assert (rate(densities, typical, torch.full((2, 6), 1e4)) < 0.01).all()


def test_a_class_of_equal_samples() -> None:
    densities, typical = Densities(1, 3, 0.5, whiten=False), Typicality()
    h, y = torch.cat([torch.ones(30, 6), some(30)]), torch.arange(60) // 30
    densities.add(h, y, range(2), rng())
    typical.add(densities, h, y, range(2), rng())
    Typicality.check(typical.tensors(), 2)
    assert rate(densities, typical, torch.ones(1, 6), [range(2)])[0] > 0.05


def test_nothing_is_added_where_earlier_classes_are_missing() -> None:
    densities, _ = learned(20)
    typical = Typicality()
    typical.add(densities, *samples(TASKS[1], 20), TASKS[1], rng())
    assert not len(typical)
    assert typical.tensors() == {}


def test_fractions_are_read_from_levels_as_they_were_measured() -> None:
    scores = torch.randn(999, generator=rng()).double()
    table = quantiles(scores)
    assert table.tolist() == sorted(table.tolist())
    assert read_fraction(table, table.expand(len(LEVELS), -1)).tolist() == pytest.approx(LEVELS)
    below = read_fraction(table[:1] - torch.tensor([0.0, 1.0, 10.0]), table.expand(3, -1))
    assert below[0] == pytest.approx(LEVELS[0])
    assert LEVELS[0] > below[1] > below[2] > 0
    assert float(read_fraction(table[-1:] + 5, table[None])) == LEVELS[-1]


def test_few_scores_are_extrapolated_below_the_lowest() -> None:
    table = quantiles(torch.tensor([1.0, 2.0, 3.0]))
    assert (table.diff() >= 0).all()
    assert table[0] < table[LEVELS.index(0.1)] < 1.0


@pytest.mark.parametrize(("column", "value"), [(0, float("nan")), (1, 0.0), (3, -1.0), (len(NUMBERS), 50.0)])
def test_impossible_tables_are_refused(column: int, value: float) -> None:
    _, typical = learned(20)
    table = typical.table.clone()
    table[1, column] = value
    with pytest.raises(ValueError, match="classes has values that are not possible"):
        Typicality.check({"classes": table}, 4)
    with pytest.raises(ValueError, match="wrong size"):
        Typicality.check(typical.tensors(), 3)


def test_what_is_left_out_is_less_likely_than_what_was_learned() -> None:
    densities, _ = learned(12)
    h, _ = samples(range(1), 12)
    left_out, known = densities.left_out(densities.compute_params(), h, 0, 100, rng()), densities.evaluate(h)
    assert left_out.shape == known.shape == (12, 4)
    assert left_out[:, 0].mean() < known[:, 0].mean()


def test_densities_integrate_to_1() -> None:
    densities = Densities(1, 1, 0.5, whiten=False)
    h = torch.randn(200, 1, generator=rng())
    densities.add(h, torch.zeros(200), range(1), rng())
    grid = torch.linspace(-8, 8, 4001)[:, None]
    assert densities.scaling is not None
    step = float(densities.scaling.scale(grid)[1] - densities.scaling.scale(grid)[0])
    assert float(densities.evaluate(grid).exp().sum()) * step == pytest.approx(1.0, abs=1e-3)
