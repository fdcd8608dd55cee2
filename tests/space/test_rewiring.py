import torch
from hypothesis import given
from hypothesis import strategies as st

from spacenet.space.rewiring import drop, grow


def test_the_least_important_go() -> None:
    importance = torch.tensor([5.0, 1.0, 3.0, 0.5, 4.0])
    assert drop(importance, 0.4).tolist() == [3, 1]
    assert drop(importance, 0.1).tolist() == []
    assert sorted(drop(importance, 1.0).tolist()) == [0, 1, 2, 3, 4]


def test_the_best_open_positions_are_grown() -> None:
    source, target = torch.tensor([1.0, 10.0, 3.0]), torch.tensor([2.0, 5.0])
    # G, target by source: 2 20 6 / 5 50 15. The best, (1, 1), is taken.
    taken = torch.zeros(2, 3, dtype=torch.bool)
    taken[1, 1] = True
    targets, sources = grow(source, target, taken, 3)
    assert list(zip(targets.tolist(), sources.tolist(), strict=True)) == [(0, 1), (1, 2), (0, 2)]


@given(st.integers(0, 1000), st.integers(1, 6), st.integers(1, 6))
def test_growth_never_takes_a_taken_position_nor_one_twice(seed: int, targets: int, sources: int) -> None:
    rng = torch.Generator().manual_seed(seed)
    taken = torch.rand(targets, sources, generator=rng) < 0.5
    count = int((~taken).sum())
    importance = torch.rand(sources, generator=rng).round(), torch.rand(targets, generator=rng).round()  # with ties
    target, source = grow(*importance, taken, count)
    assert not taken[target, source].any()
    assert len(set(zip(target.tolist(), source.tolist(), strict=True))) == count
