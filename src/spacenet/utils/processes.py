"""Processes that end in an orderly way: on SIGTERM, and with the process that started them."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

PAUSE = 0.5
"""Seconds between two looks at the parent."""
_watched: set[int] = set()
_received: list[int] = []


class Terminated(KeyboardInterrupt):
    """SIGTERM has arrived. Whatever handles Ctrl-C handles it too."""


@contextmanager
def sigterm_raises() -> Iterator[None]:
    """Raise `Terminated` in the main thread when SIGTERM arrives. A second one ends the process at once."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals belong to the main thread
        return

    def on_sigterm(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        _received.append(number)
        raise Terminated

    _received.clear()
    before = signal.signal(signal.SIGTERM, on_sigterm)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGTERM) is on_sigterm:
            signal.signal(signal.SIGTERM, before)


def describe_interrupt(error: KeyboardInterrupt) -> tuple[str, int]:
    """What has happened, in a word, and the exit code that goes with it."""
    # Ray turns whatever a signal handler raises into a KeyboardInterrupt.
    return ("terminated", 143) if isinstance(error, Terminated) or _received else ("interrupted", 130)


@contextmanager
def sigterm_kept() -> Iterator[None]:
    """Put this program's own handler of SIGTERM back after a library has installed its."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if callable(before) and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)


def end_with_parent(parent: int) -> None:
    """End this process soon after its parent, whatever ended that. `parent` is the parent's process id.

    A process whose parent was killed would otherwise compute on, and then wait for orders that never come.
    """
    if parent in _watched:
        return
    _watched.add(parent)
    threading.Thread(target=_watch, args=(parent,), name="end-with-parent", daemon=True).start()


def _watch(parent: int) -> None:
    while not _is_gone(parent):
        time.sleep(PAUSE)
    os._exit(1)


def _is_gone(parent: int) -> bool:
    if os.name != "nt":
        return os.getppid() != parent  # orphans get another parent
    from multiprocessing import parent_process

    known = parent_process()  # Windows leaves them the number; there multiprocessing holds the parent itself
    return known is not None and not known.is_alive()
