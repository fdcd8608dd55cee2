"""The progress of work that is not training: a live bar in a terminal or a notebook, elsewhere lines in the log."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

log = logging.getLogger("spacenet")
LINE_SECONDS = 5.0
"""Between lines, and before the first one: work that takes less needs none."""


@contextmanager
def track(what: str, total: int, unit: str, show: bool = True) -> Iterator[Callable[[int], None]]:
    """A function to call with the number of units that were done; `total` of them are to be done at most.

    track("reading photos", 10_000, "images") shows "reading photos: 3,200 of 10,000 images".
    """
    if not show:
        yield lambda done: None
        return
    from rich.console import Console

    console = Console(stderr=True)
    if console.is_terminal or console.is_jupyter:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn(unit))
        with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as bar:
            task = bar.add_task(what, total=total)
            yield lambda done: bar.advance(task, done)
        return
    lines = _Lines(what, total, unit)
    yield lines.advance
    lines.end()


class _Lines:
    """Lines in the log, one every few seconds."""

    def __init__(self, what: str, total: int, unit: str) -> None:
        self.what, self.total, self.unit, self.done = what, total, unit, 0
        self.began = self.last = time.monotonic()

    def advance(self, done: int) -> None:
        self.done += done
        now = time.monotonic()
        if now - self.last >= LINE_SECONDS:
            self.last = now
            log.info("%s: %s of %s %s", self.what, f"{self.done:,}", f"{self.total:,}", self.unit)

    def end(self) -> None:
        seconds = time.monotonic() - self.began
        if seconds >= LINE_SECONDS:
            log.info("%s: %s %s in %.0f s", self.what, f"{self.done:,}", self.unit, seconds)
