"""A log of bounded size: what repeats is written a few times a minute, and then counted."""

import logging
import time

PER_PERIOD = 5
PERIOD_SECONDS = 60.0
LOGGERS = ("asyncio", "uvicorn.error")


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
    """Limit what the server's libraries write."""
    for name in LOGGERS:
        logger = logging.getLogger(name)
        if not any(isinstance(each, Repetitions) for each in logger.filters):
            logger.addFilter(Repetitions())
