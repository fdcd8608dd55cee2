"""A share of the campaign; all of it takes a quarter of an hour."""

import os

import pytest

from tests.campaigns import lives


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_whatever_happens_in_its_life_a_model_keeps_what_is_promised() -> None:
    tally = lives.run(range(6), steps=8)
    assert tally.problems == []
    assert tally.steps() == 48
