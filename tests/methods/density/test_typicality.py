"""How typical samples are of classes."""

import pytest
import torch

from spacenet.methods.density.densities import Densities
from spacenet.methods.density.quantiles import LEVELS, quantiles, read_fraction
from spacenet.methods.density.typicality import NUMBERS, Typicality, rate_typicality
from spacenet.methods.density.typicality_update import update_typicality
from tests.methods.density.support import rng, some

TASKS = [range(2), range(2, 4)]
WIDE = 3**0.5


def add(
    densities: Densities, typical: Typicality, h: torch.Tensor, y: torch.Tensor, classes: range, seed: int = 0
) -> None:
    """Learn a task's classes."""
    before = densities.snapshot()
    densities.add(h, y, classes, rng(seed))
    typical.add(densities.leave_out(before, h, y, classes, rng(seed)), classes, WIDE)


def samples(classes: range, each: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Samples of classes that lie apart."""
    y = torch.arange(each * len(classes)) % len(classes) + classes.start
    return some(len(y), seed=seed) + 8.0 * y[:, None] * (-1.0) ** y[:, None], y


def learned(each: int = 400) -> tuple[Densities, Typicality]:
    densities, typical = Densities(1, 3, 0.5, whiten=False), Typicality()
    for number, classes in enumerate(TASKS):
        h, y = samples(classes, each, seed=number)
        add(densities, typical, h, y, classes, number)
    return densities, typical


def rate(densities: Densities, typical: Typicality, h: torch.Tensor) -> torch.Tensor:
    return rate_typicality(typical.compute_params(), densities.evaluate(h))


@pytest.mark.parametrize("wanted", [0.01, 0.05, 0.2])
def test_the_wanted_fraction_of_new_samples_is_below_a_rate_also_of_old_classes(wanted: float) -> None:
    densities, typical = learned()
    for number, classes in enumerate(TASKS):
        h, _ = samples(classes, 2000, seed=10 + number)
        below = rate(densities, typical, h) < wanted
        assert float(below.double().mean()) == pytest.approx(wanted, abs=0.02 + 0.2 * wanted)


def test_compared_with_all_classes_a_broad_one_takes_in_no_more_than_its_share() -> None:
    """One class is ten times as broad as the other. Between them, far from the center of either, densities are low."""
    densities = Densities(1, 3, 0.01, whiten=False, typical_of_all=True)
    typical, parts = Typicality(), []
    for number, width in enumerate((1.0, 10.0)):
        h, new = (width * some(2000, seed=seed) + 60.0 * number for seed in (number, 10 + number))
        y, classes, before = torch.full((len(h),), number), range(number, number + 1), densities.snapshot()
        densities.add(h, y, classes, rng(0))
        left_out = densities.leave_out(before, h, y, classes, rng(0))
        typical.add(left_out, classes, densities.typical_width())
        parts.append(new)
    own, joint = typical.compute_params(), typical.compute_params(of_all=True)
    low = {}
    for name, params in (("own", own), ("joint", joint)):
        rates = [rate_typicality(params, densities.evaluate(h)) < 0.05 for h in parts]
        low[name] = [float(each.double().mean()) for each in rates]
    assert low["own"] == pytest.approx([0.05, 0.05], abs=0.03)
    assert sum(low["joint"]) / 2 == pytest.approx(0.05, abs=0.02)
    assert low["joint"][0] < 0.01 < 0.05 < low["joint"][1]


def test_a_row_never_changes_by_later_tasks() -> None:
    h, y = samples(TASKS[0], 100)
    densities, typical = Densities(1, 3, 0.5, whiten=False), Typicality()
    add(densities, typical, h, y, TASKS[0])
    before = typical.table.clone()
    h, y = samples(TASKS[1], 100)
    add(densities, typical, h, y, TASKS[1], 1)
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
    add(densities, typical, h, y, range(2))
    Typicality.check(typical.tensors(), 2)
    assert rate(densities, typical, torch.ones(1, 6))[0] > 0.05


def test_nothing_is_added_where_earlier_classes_are_missing() -> None:
    densities, _ = learned(20)
    typical = Typicality()
    left_out = densities.leave_out(densities, *samples(TASKS[1], 20), TASKS[1], rng())
    typical.add(left_out, TASKS[1], WIDE)
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
    assert table[LEVELS.index(0.5)] == 2.0


def test_levels_between_two_samples_are_interpolated() -> None:
    table = quantiles(torch.arange(1.0, 36.0))  # 35 samples: the level 0.05 lies between the first and the second
    assert float(table[LEVELS.index(0.05)]) == pytest.approx(1.8)


def test_margins_count_among_all_classes() -> None:
    """A class that comes later lies near an old one: samples between them become less typical of the old one."""
    densities, typical = Densities(1, 3, 0.5, whiten=False), Typicality()
    add(densities, typical, *samples(range(2), 400), range(2))
    between = samples(range(1), 200, seed=9)[0] + torch.tensor([3.0, *[0.0] * 5])
    before = rate(densities, typical, between)
    h, y = samples(range(1), 400, seed=5)
    add(densities, typical, h + torch.tensor([9.0, *[0.0] * 5]), y + 2, range(2, 3), 1)
    assert float(rate(densities, typical, between).median()) < 0.85 * float(before.median())


def test_the_usual_margin_is_the_smallest_of_those_compared_with_more_classes() -> None:
    typical = Typicality()
    typical.table = torch.zeros(4, len(NUMBERS) + len(LEVELS))
    typical.table[:, :5] = torch.tensor(
        [[0.0, 1, 0, 0, 1], [0.0, 1, 30, 5, 2], [0.0, 1, 20, 9, 3], [0.0, 1, 70, 4, 4]]  # the last: compared with four
    )
    usual = typical.compute_params()["table"][:, 2:4].tolist()
    assert usual[1:] == [[20.0, 9.0], [20.0, 9.0], [70.0, 4.0]]
    assert usual[0][1] == 0.0  # learned alone: margins do not count


def test_margins_say_nothing_of_a_class_that_was_learned_alone() -> None:
    densities, typical = Densities(1, 3, 0.5, whiten=False), Typicality()
    for number in range(3):
        add(
            densities, typical, *samples(range(number, number + 1), 400, seed=number), range(number, number + 1), number
        )
    assert typical.table[:, NUMBERS.index("margin_spread")].tolist()[0] == 0.0
    Typicality.check(typical.tensors(), 3)
    for number in range(3):
        h, _ = samples(range(number, number + 1), 2000, seed=10 + number)
        assert float((rate(densities, typical, h) < 0.05).double().mean()) == pytest.approx(0.05, abs=0.03)


@pytest.mark.parametrize(("column", "value"), [(0, float("nan")), (1, 0.0), (3, 0.5), (len(NUMBERS), 50.0)])
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
    left_out = densities.leave_out(densities, h, torch.zeros(12, dtype=torch.long), range(1), rng())
    known = densities.evaluate(h[left_out.rows])
    assert left_out.density.shape == known.shape == (12, 4)
    assert left_out.density[:, 0].mean() < known[:, 0].mean()
    torch.testing.assert_close(left_out.density[:, 1:], known[:, 1:])
    assert torch.equal(left_out.likeness, left_out.density)
    assert left_out.rows.sort().values.tolist() == list(range(12))


def test_densities_integrate_to_1() -> None:
    densities = Densities(1, 1, 0.5, whiten=False)
    h = torch.randn(200, 1, generator=rng())
    densities.add(h, torch.zeros(200), range(1), rng())
    grid = torch.linspace(-8, 8, 4001)[:, None]
    assert densities.scaling is not None
    step = float(densities.scaling.scale(grid)[1] - densities.scaling.scale(grid)[0])
    assert float(densities.evaluate(grid).exp().sum()) * step == pytest.approx(1.0, abs=1e-3)


def test_more_samples_of_a_class_change_what_is_typical_of_it_alone() -> None:
    densities, typical = learned()
    before = typical.table.clone()
    far = samples(range(1), 400, seed=7)[0] + 3.0
    was = rate(densities, typical, far)
    counts = torch.full((4,), 400.0)
    y = torch.zeros(400, dtype=torch.long)
    typical.table = update_typicality(before, densities.evaluate(far), y, counts, WIDE)
    Typicality.check(typical.tensors(), 4)
    assert torch.equal(typical.table[1:], before[1:])
    now = rate(densities, typical, far)
    assert float(was.median()) < 0.05 < 0.15 < float(now.median())


def test_more_samples_leave_a_class_alone_that_was_learned_alone() -> None:
    densities, typical = Densities(1, 3, 0.5, whiten=False), Typicality()
    for number in range(2):
        add(
            densities, typical, *samples(range(number, number + 1), 400, seed=number), range(number, number + 1), number
        )
    h, y = samples(range(1), 400, seed=5)
    table = update_typicality(typical.table, densities.evaluate(h), y, torch.full((2,), 400.0), WIDE)
    assert table[0, 2:4].tolist() == [0.0, 0.0]
    typical.table = table
    new, _ = samples(range(1), 2000, seed=6)
    assert float((rate(densities, typical, new) < 0.05).double().mean()) == pytest.approx(0.05, abs=0.03)
