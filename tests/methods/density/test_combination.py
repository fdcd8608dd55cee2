"""Where an input belongs, then which class."""

import pytest
import torch

from spacenet.methods.density.combination import combine

TASKS = (range(2), range(2, 5))


def test_densities_choose_the_task_and_both_the_class() -> None:
    fit = torch.tensor([[1.0, 2.0, 8.0, 7.9, 0.0]])
    network = torch.tensor([[99.0, 0.0, 0.0, 3.0, 0.0]])  # sure of a class of the other task
    answer = combine(fit, network, TASKS, 1.0, 1.0)
    assert answer.argmax() == 3
    of_task = torch.tensor([fit[0, :2].exp().sum(), fit[0, 2:].exp().sum()])
    found = torch.stack([answer[0, :2].exp().sum(), answer[0, 2:].exp().sum()])
    torch.testing.assert_close(found.float(), of_task)
    within = (fit + network)[0, 2:].softmax(0)
    torch.testing.assert_close((answer[0, 2:].exp() / found[1]).float(), within)


def test_the_densest_class_may_choose_the_task_however_sure_the_network_is() -> None:
    """Of two tasks that are about as probable, the other way gives the one whose network is surer."""
    fit = torch.tensor([[5.0, 5.0, 5.1, 5.05, 0.0]])
    network = torch.tensor([[9.0, 0.0, 0.0, 1.0, 0.0]])
    assert combine(fit, network, TASKS, 1.0, 1.0).argmax() == 0
    answer = combine(fit, network, TASKS, 1.0, 1.0, densest=True)
    assert answer.argmax() == 3
    assert float(answer.max()) == pytest.approx(5.1)
    torch.testing.assert_close(combine(fit, network, TASKS, 0.5, 0.0, densest=True), 0.5 * fit.double())


@pytest.mark.parametrize("tasks", [TASKS, (range(2), range(2, 4))])
def test_without_weight_the_network_says_nothing(tasks: tuple[range, ...]) -> None:
    fit, network = torch.randn(2, 6, tasks[-1].stop)
    torch.testing.assert_close(combine(fit, network, tasks, 0.3, 0.0), 0.3 * fit.double())
    torch.testing.assert_close(combine(fit, None, tasks, 0.3, 0.5), 0.3 * fit.double())


def test_tasks_of_one_size_are_treated_like_those_of_several() -> None:
    fit, network = 100 * torch.randn(6, 4), torch.randn(6, 4)
    alike = combine(fit, network, (range(2), range(2, 4)), 0.2, 0.5)
    more = torch.cat([fit, fit[:, :1]], 1), torch.cat([network, network[:, :1]], 1)
    torch.testing.assert_close(combine(*more, (range(2), range(2, 4), range(4, 5)), 0.2, 0.5)[:, :4], alike)
