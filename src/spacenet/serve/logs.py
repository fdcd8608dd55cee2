"""The service's log: its form, where it goes, and its bounded size.

What repeats is written a few times a minute, and then counted.
"""

import json
import logging
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any, Literal

from spacenet.errors import SettingsError

Format = Literal["text", "json"]
PER_PERIOD = 5
PERIOD_SECONDS = 60.0
REPEATING = ("asyncio", "uvicorn.error", "spacenet.requests.refused")
"""Loggers of what clients can cause as often as they like."""
WRITTEN = ("spacenet", "uvicorn", "asyncio", "py.warnings")
MAX_FILE_BYTES, MAX_FILES = 10 * 1024**2, 5
"""A log file that is full is renamed FILE.1, and so on; the oldest goes."""
MAX_MESSAGE = 8192
"""Characters; tracebacks are longer than most messages."""


class Repetitions(logging.Filter):
    """Lets each message through `PER_PERIOD` times in `PERIOD_SECONDS`."""

    def __init__(self) -> None:
        super().__init__()
        self._counts: dict[str, tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        kind, now = str(record.msg).partition("\n")[0][:100], time.monotonic()
        began, count = self._counts.get(kind, (now, 0))
        if now - began > PERIOD_SECONDS:
            if count > PER_PERIOD:
                record.msg = f"{record.getMessage()} ({count - PER_PERIOD} times more in the last minutes)"
                record.args = None
            began, count = now, 0
        if len(self._counts) > 1000:  # messages with values in them
            self._counts.clear()
        self._counts[kind] = began, count + 1
        return count < PER_PERIOD


def bound_logs() -> None:
    """Limit what clients can make the service and its libraries write."""
    for name in REPEATING:
        logger = logging.getLogger(name)
        if not any(isinstance(each, Repetitions) for each in logger.filters):
            logger.addFilter(Repetitions())


class Formatter(logging.Formatter):
    """A record as the facts that both forms show. Nothing in it can begin a line of its own."""

    def facts(self, record: logging.LogRecord) -> dict[str, Any]:
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        message = record.getMessage().removeprefix("spacenet: ").removeprefix("warning: ")
        known: dict[str, Any] = {"time": f"{at}.{int(record.msecs):03}Z", "level": record.levelname.lower()}
        known |= {"logger": record.name, "message": message[:MAX_MESSAGE]}
        known |= getattr(record, "facts", {})
        if record.exc_info:
            known["traceback"] = self.formatException(record.exc_info)[-MAX_MESSAGE:]
        return known


class JsonFormatter(Formatter):
    """One JSON object in each line, in ASCII."""

    def format(self, record: logging.LogRecord) -> str:
        return json.dumps(self.facts(record), default=str)


class TextFormatter(Formatter):
    """Time, level, message and further facts; a traceback follows in lines that are indented."""

    def format(self, record: logging.LogRecord) -> str:
        facts = self.facts(record)
        at, level, message = facts.pop("time"), facts.pop("level"), facts.pop("message")
        facts.pop("logger")
        trace = "".join(f"\n    {_one_line(line)}" for line in facts.pop("traceback", "").splitlines())
        rest = "".join(f" {name}={_one_line(str(value))}" for name, value in _further(facts).items())
        return f"{at} {level} {_one_line(message)}{rest}{trace}"


def _further(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The facts that the message of a request has not."""
    return {name: value for name, value in facts.items() if name not in ("method", "path", "status")}


def _one_line(text: str) -> str:
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


@contextmanager
def write_logs(form: Format, file: Path | None) -> Iterator[None]:
    """Write what the service and its libraries log to standard error, or to a file of bounded size."""
    handler = _open(file)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    loggers = [logging.getLogger(name) for name in WRITTEN]
    before = [(each.handlers, each.propagate, each.level) for each in loggers]
    for each in loggers:
        each.handlers, each.propagate = [handler], False
        if each.name == "spacenet":
            each.setLevel(logging.INFO)
    try:
        yield
    finally:
        for each, (handlers, propagate, level) in zip(loggers, before, strict=True):
            each.handlers, each.propagate = handlers, propagate
            each.setLevel(level)
        handler.close()


def _open(file: Path | None) -> logging.Handler:
    if file is None:
        return logging.StreamHandler(sys.stderr)
    try:
        return RotatingFileHandler(file, maxBytes=MAX_FILE_BYTES, backupCount=MAX_FILES - 1, encoding="utf-8")
    except OSError as error:
        raise SettingsError(f"cannot write {file}: {error.strerror or error}", setting="log_file") from error
