"""A share of the campaign; all of it takes about half an hour."""

import os

import pytest

from tests.campaigns import forged, forged_settings
from tests.campaigns.children import PROBLEM, Case, Outcome, in_children

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def _problems(outcomes: list[Outcome]) -> list[str]:
    return [f"--seed {each.number} ({each.kind}): {each.detail}" for each in outcomes if each.result == PROBLEM]


@needs_fork
def test_forged_model_files_are_refused_or_can_be_used() -> None:
    outcomes = forged.run(40)
    assert _problems(outcomes) == []
    assert {forged.REFUSED, forged.USED} <= {each.result for each in outcomes}


@needs_fork
def test_forged_settings_files_are_refused_or_work() -> None:
    outcomes = forged_settings.run(6)
    assert _problems(outcomes) == []


@needs_fork
def test_a_case_that_ends_its_process_is_named_and_the_others_go_on() -> None:
    def prepare(number: int) -> Case:
        return lambda: os._exit(3) if number == 1 else ("kind", "done", "")

    outcomes = list(in_children(range(3), prepare))
    assert [(each.number, each.result) for each in outcomes] == [(0, "done"), (1, PROBLEM), (2, "done")]
    assert outcomes[1].detail == "the process ended with exit code 3"


def test_a_number_is_always_the_same_file() -> None:
    assert forged.forge(5) == forged.forge(5)
