"""The log of requests: facts, and nothing of what clients send."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spacenet.serve import logs
from spacenet.serve.gate import Access
from tests.serve.support import Service, service
from tests.serve.tokens import READING, bearer, both_tokens

SECRET = "a-secret-of-the-client"
BODY: dict[str, Any] = {"json": {"inputs": [[0.5] * 8] * 3}}


@pytest.fixture
def logged(tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    for name in ("spacenet", *logs.REPEATING):
        monkeypatch.setattr(logging.getLogger(name), "propagate", True)
    logging.getLogger("spacenet.requests.refused").filters.clear()
    caplog.set_level(logging.INFO, "spacenet.requests")
    with service(tmp_path, learns=True, access=Access(both_tokens(tmp_path), log_requests=True)) as it:
        yield it


def _lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [each.__dict__["facts"] for each in caplog.records if each.name.startswith("spacenet.requests")]


def test_each_request_is_a_line_of_facts(logged: Service, caplog: pytest.LogCaptureFixture) -> None:
    logged.post("/models/model/predict", headers=bearer(READING), **BODY)
    logged.ask("GET", "/health")
    logged.ask("GET", "/nowhere", headers=bearer(READING))
    predicted, health, refused = _lines(caplog)
    assert predicted.pop("milliseconds") > 0
    assert predicted == {
        "method": "POST",
        "path": "/models/{name}/predict",
        "status": 200,
        "model": "model",
        "samples": 3,
        "client": "127.0.0.1",
    }
    assert (health["path"], health["status"]) == ("/health", 200)
    assert (refused["path"], refused["status"]) == ("(unknown)", 403)


def test_nothing_that_a_client_sends_is_written(logged: Service, caplog: pytest.LogCaptureFixture) -> None:
    for path in ("/predict", f"/models/{SECRET}/predict", f"/{SECRET}%0a1970-01-01", f"/model?token={SECRET}"):
        for headers in ({}, bearer(SECRET), bearer(READING), {"host": SECRET}, {"origin": f"http://{SECRET}"}):
            logged.post(path, headers=headers, json={"inputs": [SECRET], "labels": [SECRET]})
    logged.ask(SECRET, "/model", headers=bearer(READING))
    form = logs.TextFormatter()
    text = "\n".join(form.format(each) for each in caplog.records)
    assert len(_lines(caplog)) == 21
    assert SECRET not in text
    assert READING not in text


def test_failures_of_ours_are_lines_too(
    logged: Service, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spacenet.serve.bodies.Bodies.receive", lambda *_: 1 / 0)
    assert logged.post("/predict", headers=bearer(READING), **BODY).status_code == 500
    assert _lines(caplog)[-1]["status"] == 500


def test_refused_requests_are_counted_when_they_repeat(logged: Service, caplog: pytest.LogCaptureFixture) -> None:
    logs.bound_logs()
    for _ in range(50):
        logged.ask("GET", "/model")
        logged.ask("GET", "/health")
    statuses = [each["status"] for each in _lines(caplog)]
    assert (statuses.count(401), statuses.count(200)) == (logs.PER_PERIOD, 50)
