"""Where an input belongs, then which class."""

import pytest
import torch

from spacenet.density.combination import combined

TASKS = (range(2), range(2, 5))


def test_densities_choose_the_task_and_both_the_class() -> None:
    fit = torch.tensor([[1.0, 2.0, 8.0, 7.9, 0.0]])
    network = torch.tensor([[99.0, 0.0, 0.0, 3.0, 0.0]])  # sure of a class of the other task
    answer = combined(fit, network, TASKS, 1.0, 1.0)
    assert answer.argmax() == 3
    of_task = torch.tensor([fit[0, :2].exp().sum(), fit[0, 2:].exp().sum()])
    found = torch.stack([answer[0, :2].exp().sum(), answer[0, 2:].exp().sum()])
    torch.testing.assert_close(found.float(), of_task / of_task.sum())
    within = (fit + network)[0, 2:].softmax(0)
    torch.testing.assert_close((answer[0, 2:].exp() / found[1]).float(), within)


def test_without_weight_the_network_says_nothing() -> None:
    fit, network = torch.randn(6, 5), torch.randn(6, 5)
    expected = (0.3 * fit.double()).log_softmax(1)
    torch.testing.assert_close(combined(fit, network, TASKS, 0.3, 0.0), expected)


@pytest.mark.parametrize("weight", [0.0, 0.5])
def test_they_are_probabilities(weight: float) -> None:
    answer = combined(100 * torch.randn(6, 5), torch.randn(6, 5), TASKS, 0.2, weight)
    torch.testing.assert_close(answer.exp().sum(1), torch.ones(6).to(answer))
