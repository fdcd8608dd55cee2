"""The service's benchmark at a tiny size: that it checks what it says, not how fast anything is."""

import io
import json
import socket

import pytest
from rich.console import Console

from benchmarks.clients import NO_ANSWER, Asked, ask
from benchmarks.service import Options, exit_code, measure
from benchmarks.service_figures import (
    Checker,
    Expected,
    count_failures,
    describe_phases,
    describe_service,
    slowdown,
    split_phases,
)


def test_services_under_load_answer_rightly() -> None:
    console = Console(file=io.StringIO(), width=160)
    tiny = Options(tiny=True, rounds=1, seconds=0.2, learn_rounds=1, learn_seconds=0.2, clients=1, samples=60)
    figures = measure(tiny, console)
    json.dumps(figures)
    assert exit_code(figures) == 0
    assert [(each["samples"], each["values"]) for each in figures["comparisons"]] == [(1, 784), (64, 784)]
    for comparison in figures["comparisons"]:
        own, plain = comparison["services"].values()
        assert min(own["requests"], plain["requests"], own["cpu_milliseconds"]) > 0
        assert comparison["ratio"] == pytest.approx(own["per_second"] / plain["per_second"])
    learning = figures["learning"]
    assert min(learning[name] for name in ("by_old_model", "by_new_model", "inputs_distinguished")) > 0
    assert learning["phases"]["during"]["requests"] > 0
    assert isinstance(console.file, io.StringIO)
    printed = console.file.getvalue()
    assert printed.count("times the requests per second") == 2
    assert "0 wrong answers" in printed
    assert "p99 during / before" in printed


def asked(began: float, tasks: int | None, label: int, probability: float, status: int = 200) -> Asked:
    predictions = [{"label": label, "probability": probability}]
    answer = {"predictions": predictions} if tasks is None else {"tasks": tasks, "predictions": predictions}
    return Asked(began, 0.1, 0, status, json.dumps(answer).encode())


def test_wrong_answers_are_found() -> None:
    expected: Expected = {1: [[(7, 0.5)]], 2: [[(8, 0.25)]]}
    right = [asked(0, 1, 7, 0.5), asked(1.95, 2, 8, 0.25)]
    wrong = [asked(0, 2, 7, 0.5), asked(5, 1, 7, 0.6), asked(5, 3, 7, 0.5), asked(5, 2, 7, 0.25)]
    wrong += [Asked(5, 0.1, 0, 200, b'{"tasks": 1, "predictions": []}')]
    others = [asked(5, 1, 7, 0.5, 503), asked(5, 1, 7, 0.5, 422), Asked(5, 0.1, 0, NO_ANSWER, b"refused")]
    counts = Checker(expected, 1e-6).count([*right, *wrong, *others])
    assert [counts[name] for name in ("wrong", "status_5xx", "status_4xx", "no_answer")] == [5, 1, 1, 1]
    assert count_failures(counts) == 8
    near = Checker(expected, 1e-5).count([asked(0, 1, 7, 0.5 + 4e-6), asked(0, 1, 7, 0.6)])
    assert (near["wrong"], near["largest_difference"]) == (1, pytest.approx(4e-6))
    plain = Checker({None: [[(7, 0.5)]]}, 1e-4).count([asked(0, None, 7, 0.50005), asked(0, None, 7, 0.51)])
    assert (plain["requests"], plain["wrong"]) == (2, 1)


def test_requests_are_of_the_phase_that_they_were_on_their_way_in() -> None:
    phases = split_phases([asked(began, 1, 7, 0.5) for began in (0, 1.8, 1.95, 2.5, 3.0, 3.1)], (2.0, 3.0))
    assert {name: len(each) for name, each in phases.items()} == {"before": 2, "during": 3, "after": 1}
    slow = {**phases, "during": [Asked(2.0, 0.4, 0, 200, b"")]}
    assert slowdown(describe_phases([slow])) == pytest.approx(4)
    assert slowdown(describe_phases([{**phases, "during": []}])) is None


def test_a_service_is_described_by_the_medians_of_its_rounds() -> None:
    counts = {"requests": 10, "wrong": 1, "status_4xx": 0, "status_5xx": 0, "no_answer": 0, "largest_difference": 0.5}
    rounds = [
        {"counts": counts, "per_second": each, "milliseconds": {"p50": each}, "cpu_milliseconds": each}
        for each in (1.0, 2.0, 9.0)
    ]
    found = describe_service(rounds)
    assert (found["requests"], found["wrong"], found["largest_difference"]) == (30, 3, 0.5)
    assert (found["per_second"], found["milliseconds"]["p50"], found["cpu_milliseconds"]) == (2.0, 2.0, 2.0)


def test_the_clients_note_that_no_server_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    looks = iter([False, False, True])
    found = ask(f"http://127.0.0.1:{port}/predict", [b"{}", b"[]"], 1, lambda: next(looks))
    assert [(each.number, each.status) for each in found] == [(0, NO_ANSWER), (1, NO_ANSWER), (0, NO_ANSWER)]
