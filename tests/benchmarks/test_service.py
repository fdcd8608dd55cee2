"""The service's benchmark at a tiny size: that it checks what it says, not how fast anything is."""

import io
import json

from rich.console import Console

from benchmarks.clients import Asked
from benchmarks.service import Options, _figures, measure


def test_a_service_under_load_learns_and_answers_rightly() -> None:
    console = Console(file=io.StringIO(), width=120)
    figures = measure(Options(tiny=True, seconds=0.6, clients=1, samples=60), console)
    json.dumps(figures)
    assert isinstance(console.file, io.StringIO)
    assert "0 wrong answers" in console.file.getvalue()
    assert figures["wrong"] == figures["status_4xx"] == figures["status_5xx"] == figures["no_answer"] == 0
    assert figures["by_old_model"] > 0
    assert figures["by_new_model"] > 0
    assert figures["inputs_distinguished"] > 0
    assert figures["phases"]["during"]["requests"] > 0


def test_wrong_answers_are_found() -> None:
    def asked(began: float, tasks: int, label: int, probability: float, status: int = 200) -> Asked:
        answer = {"tasks": tasks, "predictions": [{"label": label, "probability": probability}]}
        return Asked(began, 0.1, 0, status, answer)

    expected = {1: [(7, 0.5)], 2: [(8, 0.25)]}
    right = [asked(0, 1, 7, 0.5), asked(1.95, 2, 8, 0.25)]
    wrong = [asked(0, 2, 7, 0.5), asked(5, 1, 7, 0.6), asked(5, 3, 7, 0.5), asked(5, 2, 7, 0.25)]
    others = [asked(5, 1, 7, 0.5, 503), asked(5, 1, 7, 0.5, 422), Asked(5, 0.1, 0, 0, "ConnectError")]
    figures = _figures([*right, *wrong, *others], (2.0, 3.0), expected)
    assert [figures[name] for name in ("wrong", "status_5xx", "status_4xx", "no_answer")] == [4, 1, 1, 1]
    assert [phase["requests"] for phase in figures["phases"].values()] == [2, 1, 6]
