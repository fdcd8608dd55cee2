"""The clients of the service's benchmark: a process of its own that asks and asks, and notes every answer.

One thread with sockets that do not block, and requests that are written beforehand: a richer client takes many times
as long, on processors that the service needs too.
"""

import json
import multiprocessing
import selectors
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any
from urllib.parse import urlsplit

SECONDS = 60.0
"""To wait for an answer."""
READ = 2**18


@dataclass(frozen=True)
class Asked:
    """One request and what came of it."""

    began: float
    """Time of day in seconds, which all processes share."""
    seconds: float
    number: int
    """Which of the inputs it was."""
    status: int
    """0: no answer at all."""
    answer: Any


class Clients:
    """A process with clients, each with one connection and one request after the other."""

    def __init__(self, pipe: "Connection[Any, Any]") -> None:
        self._pipe = pipe

    def start(self, address: str, bodies: Sequence[bytes], clients: int) -> None:
        """Let so many clients ask at the same time, each as soon as it has its answer, until `stop`."""
        self._pipe.send((address, bodies, clients))

    def stop(self) -> list[Asked]:
        """What was asked since `start`."""
        self._pipe.send(None)
        if not self._pipe.poll(2 * SECONDS):
            raise TimeoutError("the clients do not answer")
        return [Asked(*facts, _decode(content)) for *facts, content in self._pipe.recv()]


@contextmanager
def client_process() -> Iterator[Clients]:
    """Clients that can be started and stopped several times."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_work, args=(there,), daemon=True)
    process.start()
    try:
        yield Clients(here)
    finally:
        here.close()
        process.join(5)
        process.kill()


def _decode(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return repr(content)


def _work(pipe: "Connection[Any, Any]") -> None:
    while True:
        try:
            address, bodies, clients = pipe.recv()
        except EOFError:
            return
        pipe.send(_ask(address, bodies, clients, pipe))


Facts = tuple[float, float, int, int, bytes]


def _ask(address: str, bodies: Sequence[bytes], clients: int, pipe: "Connection[Any, Any]") -> list[Facts]:
    where = urlsplit(address)
    head = f"POST {where.path or '/predict'} HTTP/1.1\r\nhost: {where.netloc}\r\ncontent-type: application/json\r\n"
    requests = [f"{head}content-length: {len(body)}\r\n\r\n".encode() + body for body in bodies]
    asked: list[Facts] = []
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        each = [_Client((where.hostname or "", where.port or 80), requests, n, asked, selector) for n in range(clients)]
        while True:
            for key, _ in selector.select(SECONDS):
                if key.data is None:
                    pipe.recv()
                    for client in each:
                        client.close()
                    return asked
                key.data.go_on()
            for client in each:
                client.give_up()


class _Client:
    """One connection: it sends a request, reads the answer, notes both, and so on."""

    def __init__(
        self,
        address: tuple[str, int],
        requests: Sequence[bytes],
        number: int,
        asked: list[Facts],
        selector: selectors.BaseSelector,
    ) -> None:
        self._address, self._requests, self._asked, self._selector = address, requests, asked, selector
        self._number = number % len(requests)
        self._connect()

    def _connect(self) -> None:
        self._socket = socket.create_connection(self._address, timeout=SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.setblocking(False)
        self._events = selectors.EVENT_READ
        self._selector.register(self._socket, self._events, self)
        self._begin()

    def _begin(self) -> None:
        self._began, self._clock, self._received = time.time(), time.perf_counter(), b""
        self._unsent = memoryview(self._requests[self._number])
        self._send()

    def go_on(self) -> None:
        """Something can be sent or read."""
        try:
            if self._unsent:
                self._send()
            part = self._socket.recv(READ)
        except BlockingIOError:
            return
        except OSError as error:
            self._fail(repr(error))
            return
        if not part:
            self._fail("the connection was closed")
            return
        self._received += part
        head, separator, body = self._received.partition(b"\r\n\r\n")
        if separator and len(body) >= _length(head):
            self._note(int(head.split(None, 2)[1]), body)
            self._begin()

    def _send(self) -> None:
        try:
            self._unsent = self._unsent[self._socket.send(self._unsent) :]
        except BlockingIOError:
            pass
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._unsent else 0)
        if events != self._events:
            self._selector.modify(self._socket, events, self)
            self._events = events

    def _note(self, status: int, content: bytes) -> None:
        seconds = time.perf_counter() - self._clock
        self._asked.append((self._began, seconds, self._number, status, content))
        self._number = (self._number + 1) % len(self._requests)

    def _fail(self, reason: str) -> None:
        self._note(0, reason.encode())
        self.close()
        self._connect()

    def give_up(self) -> None:
        if time.perf_counter() - self._clock > SECONDS:
            self._fail("no answer in time")

    def close(self) -> None:
        self._selector.unregister(self._socket)
        self._socket.close()


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0
