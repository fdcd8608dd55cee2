"""A share of the campaign: some methods are killed once. `tests/experiments/test_run.py` stops every method at random
instants, `tests/methods/test_resuming.py` with both optimizers after chosen epochs; both save the cost of a process."""

import pytest

from tests.campaigns.kills import OPTIMIZERS, kill_method


@pytest.mark.parametrize(("number", "method"), list(enumerate(("dgr", "piggyback", "spacenet", "spacenet-density"))))
def test_a_killed_run_is_resumed_to_the_same_bits(number: int, method: str) -> None:
    optimizer = list(OPTIMIZERS)[number % len(OPTIMIZERS)]
    tally = kill_method(method, kills=1, optimizers=(optimizer,))
    assert (tally.kills, tally.equal) == (1, 1)
