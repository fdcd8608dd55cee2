"""Clients that are slow, silent or endless, over real connections."""

import logging
import os
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from spacenet.errors import SettingsError
from spacenet.serve.logs import PER_PERIOD
from spacenet.serve.server import connection_limit
from tests.campaigns.slow_clients import measure
from tests.serve.live import BODY, JSON_HEAD, Live, live, read_all, status_of


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Live]:
    """A service without much patience."""
    monkeypatch.setattr("spacenet.serve.bodies.WAIT_SECONDS", 0.5)
    monkeypatch.setattr("spacenet.serve.connections.WAIT_SECONDS", 0.5)
    monkeypatch.setattr("spacenet.serve.connections.CHECK_SECONDS", 0.1)
    with live(tmp_path) as it:
        yield it


def _send_until_reset(connection: socket.socket, piece: bytes, most: int, pause: float = 0.0) -> int:
    """How many pieces can be sent."""
    for sent in range(most):
        try:
            connection.sendall(piece)
        except OSError:
            return sent
        time.sleep(pause)
    return most


def test_half_a_header_times_out(served: Live) -> None:
    with served.connect(JSON_HEAD) as half, served.connect() as silent:
        began = time.monotonic()
        assert status_of(read_all(half)) == 408
        assert read_all(silent) == b""  # nothing was asked
        assert time.monotonic() - began < 5
    assert served.ask()[0] == 200


def test_a_header_in_drops_times_out(served: Live) -> None:
    with served.connect(JSON_HEAD + "X: ") as connection:
        assert 3 <= _send_until_reset(connection, b"a", 50, pause=0.1) < 30


def test_a_stalled_body_is_answered_408_and_closed(served: Live) -> None:
    with served.connect(f"{JSON_HEAD}Content-Length: 1000\r\n\r\n12345") as connection:
        answer = read_all(connection)
    assert status_of(answer) == 408
    assert b"did not arrive in time" in answer


def test_a_slow_body_above_the_minimal_rate_is_received(served: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spacenet.serve.bodies.MIN_RATE", 100)
    with served.connect(f"{JSON_HEAD}Content-Length: {len(BODY) + 400}\r\n\r\n") as connection:
        for _ in range(20):  # longer than the service waits for any single piece
            connection.sendall(b" " * 20)
            time.sleep(0.05)
        connection.sendall(BODY)
        assert status_of(connection.recv(65536)) == 200


def test_stalled_large_bodies_do_not_block_others(tmp_path: Path) -> None:
    with live(tmp_path) as it:
        stalled = [it.connect(f"{JSON_HEAD}Content-Length: 80000\r\n\r\n" + " " * 70_000) for _ in range(20)]
        time.sleep(0.2)
        status, seconds = it.ask(BODY + b" " * 100_000)
        assert (status, seconds < 5) == (200, True)
        for each in stalled:
            each.close()


@pytest.mark.parametrize("close", ["", "Connection: close\r\n"])
def test_after_413_the_rest_is_not_swallowed(served: Live, close: str) -> None:
    piece = b"10000\r\n" + b" " * 2**16 + b"\r\n"
    with served.connect(f"{JSON_HEAD}{close}Transfer-Encoding: chunked\r\n\r\n") as connection:
        assert _send_until_reset(connection, piece, 2**14) < 2**12  # of 64 KiB each
    time.sleep(0.3)  # that was as much as is read of all rejected requests together between two checks
    with served.connect(f"{JSON_HEAD}{close}Content-Length: {2**21}\r\n\r\n") as connection:
        connection.sendall(b" " * 2**21)  # a client that first sends and then reads gets its answer
        assert status_of(read_all(connection)) == 413


def test_there_are_fewer_connections_than_files() -> None:
    with _few_more_files(300):
        assert 128 <= connection_limit() < 300 + 50
        assert connection_limit(5) == 5
        with pytest.raises(SettingsError, match="10000 are too many.*ulimit -n"):
            connection_limit(10_000)


def test_the_longest_waiting_connection_makes_room(served: Live) -> None:
    served.server.guard.limit = 8
    waiting = [served.connect(JSON_HEAD) for _ in range(8)]
    time.sleep(0.1)
    assert served.ask()[0] == 200
    assert status_of(read_all(waiting[0])) == 503
    for each in waiting:
        each.close()


def test_bodies_make_room_too(tmp_path: Path) -> None:
    with live(tmp_path) as it:
        it.server.guard.limit = 8
        waiting = [it.connect(f"{JSON_HEAD}Content-Length: 9\r\n\r\n1") for _ in range(8)]
        time.sleep(0.1)
        assert [it.ask()[0] for _ in range(3)] == [200] * 3
        assert len(it.server.guard.open) <= 8
        for each in waiting:
            each.close()


@contextmanager
def _few_more_files(number: int) -> Iterator[None]:
    """Let this process open at most so many more files: new ones get the lowest free number, which is limited."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    with Path(os.devnull).open() as file:
        resource.setrlimit(resource.RLIMIT_NOFILE, (file.fileno() + number, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_without_file_descriptors_the_service_waits_and_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    logging.getLogger("asyncio").filters.clear()  # what earlier tests have logged does not count
    with live(tmp_path) as it, ExitStack() as stack:
        clients = [stack.enter_context(socket.socket()) for _ in range(40)]
        with _few_more_files(8):
            for each in clients:
                each.connect(it.address)
                each.sendall(JSON_HEAD.encode())
            time.sleep(2.5)  # accepting is tried again every second
            assert "out of system resource" in caplog.text
            assert 1 <= len(it.server.guard.open) <= 8
            assert len([each for each in caplog.records if each.name == "asyncio"]) <= PER_PERIOD
            for each in clients:
                each.close()
            time.sleep(1.5)
        assert it.ask()[0] == 200


def test_a_client_that_does_not_read_is_cut_off(served: Live) -> None:
    body = b'{"inputs": [' + b",".join([b"[1,2,3,4,5,6,7,8]"] * 20_000) + b"]}"
    head = f"{JSON_HEAD}Content-Length: {len(body)}\r\n\r\n".encode()
    with served.connect() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.sendall((head + body) * 4)
        began = time.monotonic()
        while served.server.guard.open and time.monotonic() - began < 15:
            time.sleep(0.1)
        assert not served.server.guard.open


def test_unread_responses_are_bounded_in_sum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spacenet.serve.connections.MAX_UNSENT", 0)
    body = b'{"inputs": [' + b",".join([b"[1,2,3,4,5,6,7,8]"] * 50_000) + b"]}"
    with live(tmp_path) as it, it.connect() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.sendall(f"{JSON_HEAD}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        began = time.monotonic()
        while it.server.guard.open and time.monotonic() - began < 8:
            time.sleep(0.05)
        assert not it.server.guard.open


def test_the_service_ends_at_once_beside_silent_clients(tmp_path: Path) -> None:
    with live(tmp_path) as it:
        waiting = [it.connect(JSON_HEAD), it.connect(f"{JSON_HEAD}Content-Length: 9\r\n\r\n1")]
        time.sleep(0.1)
        began = time.monotonic()
    assert time.monotonic() - began < 5
    for each in waiting:
        each.close()


@pytest.mark.parametrize("secure", [False, True])
def test_many_slow_clients_leave_the_service_usable(secure: bool) -> None:
    """A small share of the campaign; how long others wait is measured there, on an idle computer."""
    figures = measure(slow=60, seconds=2 if secure else 3, clients=2, secure=secure)
    assert figures.bounded(), figures
    assert figures.p99_during < 2000
    assert logging.getLogger("uvicorn.error").filters
