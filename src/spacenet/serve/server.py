"""The server around the application: its limits, and how it ends."""

import gc
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any, cast

import uvicorn
from starlette.types import ASGIApp

from spacenet.serve.connections import MAX_HEADERS, Connection, Guard
from spacenet.serve.logs import bound_logs

MAX_CONNECTIONS = 1000
SPARE_FILES = 128
"""Files that the process may need for other things than connections."""
LAST_REQUESTS_SECONDS = 10
ACCEPT_AT_ONCE = 4
"""New connections between two looks at the others."""
BACKLOG = 1024
COLLECT_AFTER = (10_000, 20, 100)
"""Garbage is collected less often than by default, because that stops all threads."""
SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name)]


class Server(uvicorn.Server):
    """Serves an application until `stop`."""

    def __init__(self, app: ASGIApp) -> None:
        self.guard = Guard(connection_limit())
        config = uvicorn.Config(
            app,
            http=cast(Any, partial(Connection, self.guard)),
            ws="none",
            lifespan="off",
            proxy_headers=False,
            backlog=ACCEPT_AT_ONCE,
            timeout_graceful_shutdown=LAST_REQUESTS_SECONDS,
            h11_max_incomplete_event_size=MAX_HEADERS,
            log_level="warning",
            access_log=False,
        )
        bound_logs()
        super().__init__(config)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for each in sockets or ():  # asyncio takes one number for both
            each.listen(BACKLOG)
        gc.collect()
        gc.freeze()  # libraries are no garbage: going through all their objects would hold up every request
        gc.set_threshold(*COLLECT_AFTER)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to `end_on_signals`: they must not end the process before it has tidied up."""
        yield


class Ending:
    """What a signal does: it ends the server, if that runs already."""

    server: uvicorn.Server | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.server is None:
            raise KeyboardInterrupt
        self.server.handle_exit(number, frame)


@contextmanager
def end_on_signals() -> Iterator[Ending]:
    """Let SIGINT, SIGTERM and SIGHUP end the server; the process goes on to the end of the block."""
    ending = Ending()
    if threading.current_thread() is not threading.main_thread():
        yield ending
        return
    before = {each: signal.signal(each, ending) for each in SIGNALS}
    try:
        yield ending
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def connection_limit() -> int:
    """Connections at the same time: fewer than the files that the process may open."""
    try:
        import resource
    except ImportError:  # Windows
        return MAX_CONNECTIONS
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return MAX_CONNECTIONS
    return min(MAX_CONNECTIONS, max(files - SPARE_FILES, files // 4, 1))
