"""The clients of the service's benchmark: they ask and ask, and note every answer.

One thread with sockets that do not block, and requests that are written beforehand: a richer client takes many times
as long, on processors that the service needs too.
"""

import json
import multiprocessing
import selectors
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any
from urllib.parse import urlsplit

SECONDS = 60.0
"""To wait for an answer."""
LOOK_SECONDS = 0.05
"""How often the clients look whether it is over."""
READ_BYTES = 2**18
NO_ANSWER = 0


@dataclass(frozen=True)
class Asked:
    """One request and what came of it."""

    began: float
    """Time of day in seconds, which all processes share."""
    seconds: float
    number: int
    """Which of the inputs it was."""
    status: int
    """`NO_ANSWER`, if there was none."""
    content: bytes

    def answer(self) -> Any:
        """What the JSON says."""
        return json.loads(self.content)


class Clients:
    """A process of clients that can be started and stopped several times."""

    def __init__(self, pipe: "Connection[Any, Any]") -> None:
        self._pipe = pipe

    def start(self, address: str, bodies: Sequence[bytes], clients: int) -> None:
        """Let them ask until `stop`."""
        self._pipe.send((address, bodies, clients))

    def stop(self) -> list[Asked]:
        """What was asked since `start`."""
        self._pipe.send(None)
        if not self._pipe.poll(2 * SECONDS):
            raise TimeoutError("the clients do not answer")
        asked: list[Asked] = self._pipe.recv()
        return asked


@contextmanager
def client_process() -> Iterator[Clients]:
    """Clients in a process of their own."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_work, args=(there,), daemon=True)
    process.start()
    try:
        yield Clients(here)
    finally:
        here.close()
        process.kill()
        process.join()


def _work(pipe: "Connection[Any, Any]") -> None:
    with suppress(EOFError):  # the other end is closed
        while True:
            address, bodies, clients = pipe.recv()
            asked = ask(address, bodies, clients, pipe.poll)
            pipe.recv()
            pipe.send(asked)


def ask(address: str, bodies: Sequence[bytes], clients: int, over: Callable[[], bool]) -> list[Asked]:
    """Let so many clients ask at the same time, each as soon as it has its answer, until it is over."""
    where = urlsplit(address)
    head = f"POST {where.path} HTTP/1.1\r\nhost: {where.netloc}\r\ncontent-type: application/json\r\n"
    requests = [f"{head}content-length: {len(body)}\r\n\r\n".encode() + body for body in bodies]
    asked: list[Asked] = []
    with selectors.DefaultSelector() as selector:
        at = where.hostname or "", where.port or 80
        each = [_Client(at, requests, number, asked, selector) for number in range(clients)]
        looked = time.monotonic()
        while True:
            for key, _ in selector.select(LOOK_SECONDS):
                key.data.go_on()
            if time.monotonic() - looked > LOOK_SECONDS:
                if over():
                    break
                for client in each:
                    client.check_time()
                looked = time.monotonic()
        for client in each:
            client.close()
    return asked


class _Client:
    """One connection: it sends a request, reads the answer, notes both, and so on."""

    def __init__(
        self,
        address: tuple[str, int],
        requests: Sequence[bytes],
        number: int,
        asked: list[Asked],
        selector: selectors.BaseSelector,
    ) -> None:
        self._address, self._requests, self._asked, self._selector = address, requests, asked, selector
        self._number = number % len(requests)
        self._socket: socket.socket | None = None
        self._connect()

    def _connect(self) -> None:
        self._clock, self._began = time.perf_counter(), time.time()
        try:
            self._socket = socket.create_connection(self._address, timeout=SECONDS)
        except OSError as error:
            self._socket = None  # until `check_time`
            self._note(NO_ANSWER, repr(error).encode())
            return
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
        assert self._socket is not None
        try:
            if self._unsent:
                self._send()
            part = self._socket.recv(READ_BYTES)
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
        assert self._socket is not None
        with suppress(BlockingIOError):
            self._unsent = self._unsent[self._socket.send(self._unsent) :]
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._unsent else 0)
        if events != self._events:
            self._selector.modify(self._socket, events, self)
            self._events = events

    def _note(self, status: int, content: bytes) -> None:
        seconds = time.perf_counter() - self._clock
        self._asked.append(Asked(self._began, seconds, self._number, status, content))
        self._number = (self._number + 1) % len(self._requests)

    def _fail(self, reason: str) -> None:
        self._note(NO_ANSWER, reason.encode())
        self.close()
        self._connect()

    def check_time(self) -> None:
        """Connect again if that failed, and do not wait for an answer for ever."""
        if self._socket is None:
            self._connect()
        elif time.perf_counter() - self._clock > SECONDS:
            self._fail("no answer in time")

    def close(self) -> None:
        if self._socket is not None:
            self._selector.unregister(self._socket)
            self._socket.close()


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0
