"""A share of the campaign; all of it takes some minutes."""

import os

import pytest

from tests.campaigns import writers


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_writers_at_the_same_time_lose_nothing_without_a_word() -> None:
    pairs = {"learn + edit of service": 1, "estimator + learn": 1, "learn + service": 1}
    for name, tally in writers.run(pairs).items():
        assert (tally.problems, tally.lost) == ([], 0), name
        assert tally.both + tally.refused == tally.pairs
        assert tally.loads > tally.pairs
