"""The log: what repeats does not fill it, and nothing that clients send can forge a line."""

import json
import logging
import sys
from pathlib import Path

import pytest

from spacenet.errors import SettingsError
from spacenet.serve import logs


def _record(text: str, **facts: object) -> logging.LogRecord:
    record = logging.LogRecord("asyncio", logging.ERROR, "", 0, text, None, None)
    record.__dict__.update(facts)
    return record


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


def test_a_record_is_one_line_whatever_is_in_it() -> None:
    evil = "a\nb\r\x1b[31m\u2028\x85 c\0"
    for form in (logs.TextFormatter(), logs.JsonFormatter()):
        line = form.format(_record(evil, facts={"model": evil}))
        assert len(line.splitlines()) == 1
        assert "\x1b" not in line
    assert json.loads(line)["model"] == evil


def test_both_forms_have_the_facts() -> None:
    record = _record("spacenet: warning: GET /model 200", facts={"method": "GET", "milliseconds": 1.5, "samples": 3})
    record.created, record.msecs = 0.25, 250.0
    text = logs.TextFormatter().format(record)
    assert text == "1970-01-01T00:00:00.250Z error GET /model 200 milliseconds=1.5 samples=3"
    assert json.loads(logs.JsonFormatter().format(record)) == {
        "time": "1970-01-01T00:00:00.250Z",
        "level": "error",
        "logger": "asyncio",
        "message": "GET /model 200",
        "method": "GET",
        "milliseconds": 1.5,
        "samples": 3,
    }


def test_tracebacks_are_indented_or_in_a_field() -> None:
    try:
        raise ValueError("one\n1970-01-01T00:00:00.250Z forged")
    except ValueError:
        record = logging.LogRecord("uvicorn.error", logging.ERROR, "", 0, "failed", None, sys.exc_info())
    first, *rest = logs.TextFormatter().format(record).splitlines()
    assert first.endswith("error failed")
    assert all(line.startswith("    ") for line in rest)
    assert "forged" in json.loads(logs.JsonFormatter().format(record))["traceback"]


def test_a_log_file_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MAX_FILE_BYTES", 2000)
    before = list(logging.getLogger("spacenet").handlers)
    with logs.write_logs("json", tmp_path / "log"):
        for number in range(200):
            logging.getLogger("spacenet.requests").info("GET /model 200", extra={"facts": {"samples": number}})
    assert logging.getLogger("spacenet").handlers == before
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["log", "log.1", "log.2", "log.3", "log.4"]
    assert all(path.stat().st_size <= 2000 for path in tmp_path.iterdir())
    assert json.loads((tmp_path / "log").read_text().splitlines()[-1])["samples"] == 199


def test_a_log_file_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="log_file: cannot write"), logs.write_logs("text", tmp_path / "no" / "log"):
        pass
