"""The server around the application: its limits, and how it ends."""

import gc
import signal
import socket
import ssl
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from spacenet.errors import SettingsError
from spacenet.serve.connections import MAX_HEADERS, Connection, Guard
from spacenet.serve.logs import bound_logs
from spacenet.serve.tls import SecureConnection, limit_buffers

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
    """Serves an application until `stop`; with a certificate over TLS."""

    def __init__(
        self, app: ASGIApp, certificate: ssl.SSLContext | None = None, max_connections: int | None = None
    ) -> None:
        self.guard = Guard(connection_limit(max_connections))
        connection: Any = partial(Connection, self.guard)
        if certificate is not None:
            limit_buffers()
            connection = partial(SecureConnection, self.guard, certificate)
        config = uvicorn.Config(
            app,
            http=connection,
            ws="none",
            lifespan="off",
            proxy_headers=False,
            backlog=ACCEPT_AT_ONCE,
            timeout_graceful_shutdown=LAST_REQUESTS_SECONDS,
            h11_max_incomplete_event_size=MAX_HEADERS,
            log_config=None,
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


def connection_limit(wanted: int | None = None) -> int:
    """Connections at the same time: fewer than the files that the process may open."""
    most = _most_connections()
    if wanted is None:
        return min(MAX_CONNECTIONS, most)
    if wanted > most:
        reason = f"the process may open files for {most} connections at most; raise the limit with ulimit -n"
        raise SettingsError(f"{wanted} are too many: {reason}", setting="max_connections")
    return wanted


def _most_connections() -> int:
    try:
        import resource
    except ImportError:  # Windows
        return MAX_CONNECTIONS
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return sys.maxsize
    return max(files - SPARE_FILES, files // 4, 1)
