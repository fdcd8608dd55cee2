"""The weight of the network's scores: chosen on held-out samples, and 0 unless the network clearly helps."""

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


def test_the_network_counts_only_where_it_clearly_helps() -> None:
    assert choose_weight(scores(wrong=4), scores(wrong=0), Y) == 0.0  # four signs of one kind: two standard errors
    assert choose_weight(scores(wrong=0), scores(wrong=30), Y) == 0.0
    assert choose_weight(scores(wrong=5), scores(wrong=0, size=2.0), Y) == 1.0
    assert choose_weight(scores(wrong=40, size=10.0), scores(wrong=0), Y) == WEIGHTS[-1]
    # More network would undo what densities know: the smallest weight that helps is best.
    both = torch.where(torch.arange(100)[:, None] < 50, scores(0, 3.0), scores(100, 0.1))
    assert choose_weight(both, scores(wrong=30), Y) == 0.25
