"""The weight of the network's scores, chosen on held-out samples: 0 unless the network helps."""

import torch

from spacenet.methods.density.selection import FRACTION, LEAST, WEIGHTS, choose_weight, hold_out
from spacenet.utils.seeding import generator

Y = torch.arange(100) % 2


def scores(wrong: int, size: float = 1.0) -> torch.Tensor:
    """Scores of two classes that are wrong for the first samples."""
    right = torch.nn.functional.one_hot(Y, 2).float()
    right[:wrong] = 1 - right[:wrong]
    return size * (2 * right - 1)


def test_a_fifth_of_each_class_is_held_out() -> None:
    y = torch.tensor([3] * 100 + [4] * 50)
    held = hold_out(y, range(3, 5), generator(0, "held out", 0))
    assert held is not None
    assert y[held].bincount().tolist()[3:] == [FRACTION * 100, FRACTION * 50]
    again, other = (hold_out(y, range(3, 5), generator(0, "held out", task)) for task in (0, 1))
    assert again is not None
    assert other is not None
    assert torch.equal(held, again)
    assert not torch.equal(held, other)


def test_nothing_is_held_out_of_a_single_class_or_of_few_samples() -> None:
    assert hold_out(torch.zeros(1000), range(1), generator(0, "held out", 0)) is None
    few = torch.arange(5 * LEAST - 10) % 2
    assert hold_out(few, range(2), generator(0, "held out", 0)) is None


def test_a_network_that_knows_nothing_more_does_not_count() -> None:
    noise = torch.randn(100, 2, generator=torch.Generator().manual_seed(0))
    assert choose_weight(scores(wrong=10), noise, Y) == 0.0
    assert choose_weight(scores(wrong=0), scores(wrong=30), Y) == 0.0


def test_a_second_opinion_counts_a_little_and_a_much_better_one_alone() -> None:
    rng = torch.Generator().manual_seed(1)
    densities, network = (scores(0, 0.7) + 0.8 * torch.randn(100, 2, generator=rng) for _ in range(2))
    weight = choose_weight(densities, network, Y)
    right = [int((densities + each * network).argmax(1).eq(Y).sum()) for each in (0.0, weight)]
    assert 0.25 <= weight <= 1.0
    assert right[1] > right[0]
    assert choose_weight(scores(wrong=40, size=10.0), scores(wrong=0), Y) == WEIGHTS[-1]


def test_more_network_that_undoes_what_densities_know_is_not_taken() -> None:
    both = torch.where(torch.arange(100)[:, None] < 50, scores(0, 3.0), scores(100, 0.1))
    assert choose_weight(both, scores(wrong=30), Y) == 0.25
