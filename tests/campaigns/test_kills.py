"""A share of the campaign: every method is killed once. `tests/methods/test_resuming.py` stops each of them with both
optimizers after chosen epochs."""

import pytest

from spacenet.registry import METHODS
from tests.campaigns.kills import OPTIMIZERS, kill_method


@pytest.mark.parametrize(("number", "method"), list(enumerate(METHODS)))
def test_a_killed_run_is_resumed_to_the_same_bits(number: int, method: str) -> None:
    optimizer = list(OPTIMIZERS)[number % len(OPTIMIZERS)]
    tally = kill_method(method, kills=1, optimizers=(optimizer,))
    assert (tally.kills, tally.equal) == (1, 1)
