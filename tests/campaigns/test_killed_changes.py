"""A share of the campaign; all of it takes some minutes."""

import os

import pytest

from tests.campaigns import killed_changes

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.mark.parametrize("name", ["learn", "edit forget"])
def test_a_killed_command_leaves_the_old_file_or_the_new_one(name: str) -> None:
    tally = killed_changes.kill_commands(name, 2)
    assert (tally.kills, tally.problems) == (2, [])


def test_a_killed_service_loses_no_job() -> None:
    tally = killed_changes.kill_services(2)
    assert tally.kills >= 2
    assert tally.problems == []
