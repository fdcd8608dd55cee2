"""What repeats does not fill the log."""

import logging

import pytest

from spacenet.serve import logs


def _record(text: str) -> logging.LogRecord:
    return logging.LogRecord("asyncio", logging.ERROR, "", 0, text, None, None)


def test_repetitions_are_counted_instead_of_written(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    limit = logs.Repetitions()
    written = sum(limit.filter(_record(f"out of system resource\nsocket: {number}")) for number in range(5000))
    assert written == logs.PER_PERIOD
    assert limit.filter(_record("something else"))
    now = 61.0
    later = _record("out of system resource")
    assert limit.filter(later)
    assert later.getMessage() == "out of system resource (4995 times more in the last minutes)"


def test_thousands_of_different_messages_take_no_memory() -> None:
    limit = logs.Repetitions()
    for number in range(5000):
        limit.filter(_record(f"message {number}"))
    assert len(limit._counts) <= 1001


def test_the_loggers_of_the_server_are_bounded_once() -> None:
    logs.bound_logs()
    logs.bound_logs()
    for name in logs.REPEATING:
        assert sum(isinstance(each, logs.Repetitions) for each in logging.getLogger(name).filters) == 1
