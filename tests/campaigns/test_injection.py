"""A share of the campaign: a few faults of every command. `python -m tests.campaigns.injection` runs all of it."""

import os
from pathlib import Path

import pytest

from tests.campaigns import injection
from tests.campaigns.scenarios import SCENARIOS, Scenario

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
SLOW = ("export --to onnx", "export --to torch", "run with report", "report --figures", "compare", "sweep")
"""They take seconds; the campaign has them."""


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> injection.Campaign:
    return injection.Campaign(tmp_path_factory.mktemp("campaign"))


@pytest.mark.parametrize("scenario", [s for s in SCENARIOS if s.name not in SLOW], ids=lambda scenario: scenario.name)
def test_commands_survive_faults_of_the_file_system(scenario: Scenario, campaign: injection.Campaign) -> None:
    result = campaign.attack(scenario, most=1)
    assert result.faults == 1
    assert result.problems == []


def test_what_goes_wrong_is_noticed(campaign: injection.Campaign) -> None:
    """A command that writes in the place of the old file, and one that writes past the functions that can fail."""

    def careless(folder: Path) -> int:
        (folder / "model.safetensors").write_bytes(b"new" * 1000)
        return 0

    def hidden(folder: Path) -> int:
        os.posix_spawn("/bin/sh", ["sh", "-c", f"echo x > {folder}/secret"], {})
        os.wait()
        return 0

    problems = campaign.attack(Scenario("careless", careless), most=4).problems
    assert any("neither the old one nor the new one" in problem for problem in problems)
    assert any("Traceback" in problem for problem in problems)
    assert any("secret is written in a way" in problem for problem in campaign.attack(Scenario("h", hidden)).problems)
