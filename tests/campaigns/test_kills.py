import pytest

from tests.campaigns.kills import kill_method


@pytest.mark.parametrize("method", ["dgr", "piggyback", "spacenet"])
def test_a_killed_run_is_resumed_to_the_same_bits(method: str) -> None:
    tally = kill_method(method, kills=2)
    assert (tally.kills, tally.equal) == (2, 2)
