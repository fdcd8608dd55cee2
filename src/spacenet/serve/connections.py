"""Connections of the service: limited in number, in the time that headers may take, and in what is left unread.

A connection has some seconds of patience. They run while the service waits for headers, or for the client to read a
response; the time of bodies is limited in `bodies.py`.
"""

import asyncio
import json
from typing import Any, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from spacenet.serve.bodies import MIN_RATE, WAIT_SECONDS, draw_patience

CHECK_SECONDS = 0.25
MAX_HEADERS = 32 * 1024
LINGER_SECONDS = 2.0
"""How long the rest of a rejected request is read, so that the client comes to reading the response."""
LINGER_BYTES = 16 * 1024**2
"""… and how much of such rests is read in `CHECK_SECONDS`, of all connections together."""
MAX_UNSENT = 256 * 1024**2
"""Bytes of responses that clients have not read yet, of all connections together."""
MAX_UNSEEN = 64 * 1024
"""Bytes of a response that may wait in a connection before that counts as unread."""
REASONS = {408: "Request Timeout", 503: "Service Unavailable"}


class Guard:
    """Counts the connections, ends those that wait too long, and makes room for new ones."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.open: set[Connection] = set()
        self.silent: dict[Connection, None] = {}
        """Those that wait for their client; the longest waiting first."""
        self.unread: dict[Connection, None] = {}
        """Those whose client does not read the response; the first one first."""
        self.linger_left = LINGER_BYTES
        self._timer: asyncio.TimerHandle | None = None

    def enter(self, new: "Connection") -> None:
        self.open.add(new)
        self.silent[new] = None
        if self._timer is None:
            self._timer = new.loop.call_later(CHECK_SECONDS, self._check, new.loop)
        if len(self.open) > self.limit:
            next(iter(self.silent)).refuse(503, "too many connections are open; try again later")

    def leave(self, old: "Connection") -> None:
        self.open.discard(old)
        self.silent.pop(old, None)
        self.unread.pop(old, None)

    def note_data(self, connection: "Connection") -> None:
        """The client sent something. Only bodies count as news: headers come in one piece from clients that mean it."""
        state = connection.conn.their_state
        if state is not h11.IDLE:
            self.silent.pop(connection, None)
        if state is h11.SEND_BODY:
            self.silent[connection] = None

    def note_response(self, connection: "Connection") -> None:
        """The client has its response, and may send another request."""
        self.silent.pop(connection, None)
        if connection.conn.their_state is h11.IDLE:
            self.silent[connection] = None

    def limit_unread(self) -> None:
        sizes = {each: each.unsent() for each in self.unread}
        total = sum(sizes.values())
        for each, size in sizes.items():
            if total <= MAX_UNSENT:
                break
            each.real.abort()
            total -= size

    def _check(self, loop: asyncio.AbstractEventLoop) -> None:
        self.linger_left = LINGER_BYTES
        for each in list(self.open):
            each.lose_patience(CHECK_SECONDS)
        self.limit_unread()
        self._timer = loop.call_later(CHECK_SECONDS, self._check, loop) if self.open else None


class PoliteTransport:
    """A transport whose `close` lets the client read the response before the connection is gone.

    The head of a response waits for the first part of its body, which comes at once, as a rule: two packets take the
    service and the client twice the time.
    """

    def __init__(self, connection: "Connection", real: asyncio.Transport) -> None:
        self._connection, self._real, self._head = connection, real, b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def write(self, data: bytes) -> None:
        if self._head:
            head, self._head = self._head, b""
            self._real.writelines((head, data))
        elif data:
            self._head = data
            self._connection.loop.call_soon(self.flush)

    def flush(self) -> None:
        """Send what waits."""
        if self._head:
            head, self._head = self._head, b""
            self._real.write(head)

    def close(self) -> None:
        self.flush()
        self._connection.end()

    def is_closing(self) -> bool:
        return self._connection.lingers or self._real.is_closing()


class Connection(H11Protocol):
    """uvicorn's connection under guard."""

    def __init__(self, guard: Guard, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.guard, self.lingers = guard, False
        self._patience, self._unsent = draw_patience(), 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.real = transport
        super().connection_made(cast(Any, PoliteTransport(self, transport)))
        self.guard.enter(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.guard.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self.lingers:
            super().data_received(data)
            self.guard.note_data(self)
            return
        self.guard.linger_left -= len(data)
        if self.guard.linger_left < 0:
            self.real.abort()

    def on_response_complete(self) -> None:
        if self.conn.their_state is h11.SEND_BODY:  # the request was rejected before all of it was read
            if not self.transport.is_closing():
                self.end()
            return
        self._patience = draw_patience()
        super().on_response_complete()
        self.guard.note_response(self)

    def pause_writing(self) -> None:
        super().pause_writing()
        self.guard.unread[self] = None
        self.guard.limit_unread()

    def resume_writing(self) -> None:
        super().resume_writing()
        self.guard.unread.pop(self, None)

    def shutdown(self) -> None:
        if self.conn.their_state is h11.SEND_BODY:  # the service ends and does not wait for the rest
            self.real.abort()
        else:
            super().shutdown()

    def end(self) -> None:
        """Close the connection. A client that is still sending would lose the response, so it is heard for a while."""
        if self.conn.their_state is not h11.SEND_BODY or self.lingers or self.real.is_closing():
            self.close()
            return
        self.lingers, self._patience = True, LINGER_SECONDS
        self._unset_keepalive_if_required()
        self.guard.silent.pop(self, None)
        self.guard.silent[self] = None
        self.flow.resume_reading()
        if self.real.can_write_eof():
            self.real.write_eof()

    def refuse(self, status: int, reason: str) -> None:
        """Close the connection, with a response if one is due: to an idle client it would come unasked."""
        body = json.dumps({"error": reason}).encode()
        head = f"HTTP/1.1 {status} {REASONS[status]}\r\ncontent-type: application/json\r\nconnection: close\r\n"
        answered = self.cycle is not None and self.cycle.response_started
        due = self.conn.trailing_data[0] if self.conn.their_state is h11.IDLE else not answered
        if due and not self.lingers:
            self.real.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        self.guard.silent.pop(self, None)
        self.close()

    def close(self) -> None:
        """Close the transport, but only once: asyncio's for TLS cannot be asked for anything after a second time."""
        if not self.real.is_closing():
            self.real.close()

    def unsent(self) -> int:
        """Bytes of responses that the client has not taken yet."""
        return self.real.get_write_buffer_size()

    def lose_patience(self, seconds: float) -> None:
        unsent, sent = self.unsent(), 0
        waits = unsent or self.lingers or self.real.is_closing() or self.conn.their_state is h11.IDLE
        if unsent and self._unsent:
            sent = max(self._unsent - unsent, 0)
        self._unsent = unsent
        if unsent > MAX_UNSEEN:  # TLS may hold a response back without saying so
            self.guard.unread.setdefault(self)
        else:
            self.guard.unread.pop(self, None)
        self._patience = min(WAIT_SECONDS, self._patience - seconds + sent / MIN_RATE) if waits else WAIT_SECONDS
        if self._patience > 0:
            return
        if unsent or self.lingers or self.real.is_closing():
            self.real.abort()
        else:
            self.refuse(408, f"the headers of the request did not arrive within {WAIT_SECONDS:g} s")
