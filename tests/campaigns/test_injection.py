"""A share of the campaign; all of it takes about an hour."""

import os

import pytest

from tests.campaigns import injection


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("command", ["learn", "predict"])
def test_commands_survive_faults_of_the_file_system(command: str) -> None:
    (result,) = injection.run(stride=4, kinds=("no space", "killed"), only=(command,))
    assert result.faults >= 6
    assert result.problems == ()
