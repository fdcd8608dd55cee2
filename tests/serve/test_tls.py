"""TLS: what the files must be, and connections that are as well guarded as others."""

import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from spacenet.errors import SettingsError
from spacenet.serve.connections import LINGER_BYTES
from spacenet.serve.tls import load_certificate
from tests.serve.certificates import make_certificate
from tests.serve.live import BODY, Live, live, read_all, status_of

JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_certificate(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def served(tmp_path: Path, files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[Live]:
    """A service without much patience."""
    for module in ("bodies", "connections", "tls"):
        monkeypatch.setattr(f"spacenet.serve.{module}.WAIT_SECONDS", 0.5)
    monkeypatch.setattr("spacenet.serve.connections.CHECK_SECONDS", 0.1)
    with live(tmp_path, certificate=load_certificate(*files)) as it:
        yield it


def _client(served: Live, files: tuple[Path, Path]) -> httpx.Client:
    trusted = ssl.create_default_context(cafile=files[0])
    headers = {"host": "localhost:8000", **JSON}
    return httpx.Client(base_url=f"https://127.0.0.1:{served.address[1]}", verify=trusted, headers=headers)


def _connect(served: Live) -> ssl.SSLSocket:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(served.connect())


def _head(length: str) -> bytes:
    head = "POST /predict HTTP/1.1\r\nHost: localhost:8000\r\nContent-Type: application/json\r\n"
    return f"{head}{length}\r\n\r\n".encode()


def test_answers_come_over_tls(served: Live, files: tuple[Path, Path]) -> None:
    large = b'{"inputs": [' + b",".join([b"[1,2,3,4,5,6,7,8]"] * 30_000) + b"]}"
    with _client(served, files) as client:
        for _ in range(3):
            assert client.post("/predict", content=BODY).json()["predictions"]
        assert len(client.post("/predict", content=large).json()["predictions"]) == 30_000
        assert client.post("/predict", content=b" " * 2**21).status_code == 413
    with socket.create_connection(served.address, timeout=5) as plain:
        plain.sendall(_head("Content-Length: 0"))
        assert not read_all(plain).startswith(b"HTTP")


def test_https_pages_of_its_own_are_answered_and_http_pages_are_not(served: Live, files: tuple[Path, Path]) -> None:
    with _client(served, files) as client:
        for origin, status in {"https://localhost:8000": 200, "http://localhost:8000": 403}.items():
            assert client.get("/health", headers={"origin": origin}).status_code == status


def test_old_versions_are_refused(served: Live) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises((ssl.SSLError, ConnectionError)), served.connect() as plain:
        context.wrap_socket(plain)


def test_handshakes_that_stall_time_out_and_are_counted(served: Live) -> None:
    with served.connect() as silent, served.connect(b"\x16\x03\x01\x02\x00") as half:
        time.sleep(0.1)
        assert len(served.server.guard.open) == 2
        began = time.monotonic()
        assert (read_all(silent), read_all(half)) == (b"", b"")
        assert time.monotonic() - began < 5
    _wait_until_empty(served)


def test_what_is_no_handshake_ends_the_connection(served: Live) -> None:
    for sent in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\xff\xff" + b"\0" * 70_000, b"\x15\x03\x01\x00\x02\x02\x28"):
        with served.connect() as connection:
            connection.sendall(sent)
            read_all(connection)
    with served.connect():
        pass  # and gone
    _wait_until_empty(served)


def test_slow_clients_are_ended_as_without_tls(served: Live) -> None:
    with _connect(served) as half, _connect(served) as stalled, _connect(served) as silent:
        half.sendall(b"POST /predict HTTP/1.1\r\nHost: localhost")
        stalled.sendall(_head("Content-Length: 1000") + b"12345")
        assert status_of(read_all(half)) == 408
        assert b"did not arrive in time" in read_all(stalled)
        assert read_all(silent) == b""
    _wait_until_empty(served)


def test_the_longest_waiting_makes_room_for_new_connections(served: Live, files: tuple[Path, Path]) -> None:
    served.server.guard.limit = 4
    waiting = [served.connect() for _ in range(4)]
    time.sleep(0.1)
    with _client(served, files) as client:
        assert client.post("/predict", content=BODY).status_code == 200
    for each in waiting:
        each.close()


def test_a_rejected_body_that_goes_on_is_cut_off(served: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spacenet.serve.connections.WAIT_SECONDS", 10)
    piece = b"10000\r\n" + b" " * 2**16 + b"\r\n"
    with _connect(served) as connection:
        connection.sendall(_head("Transfer-Encoding: chunked"))
        assert _send_until_reset(connection, piece) < 2**12
    began = time.monotonic()
    while served.server.guard.linger_left < LINGER_BYTES and time.monotonic() - began < 5:
        time.sleep(0.05)  # what the first connection sent counts for a moment
    with _connect(served) as connection:
        connection.sendall(_head(f"Content-Length: {2**21}") + b" " * 2**21)
        assert status_of(connection.recv(65536)) == 413  # first sent, then read


def test_a_client_that_does_not_read_is_cut_off(served: Live) -> None:
    body = b'{"inputs": [' + b",".join([b"[1,2,3,4,5,6,7,8]"] * 50_000) + b"]}"
    plain = served.connect()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with context.wrap_socket(plain) as connection:
        connection.sendall(_head(f"Content-Length: {len(body)}") + body)
        _wait_until_empty(served, 15)


def test_unread_responses_are_bounded_in_sum(served: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spacenet.serve.connections.MAX_UNSENT", 0)
    monkeypatch.setattr("spacenet.serve.connections.WAIT_SECONDS", 60)
    body = b'{"inputs": [' + b",".join([b"[1,2,3,4,5,6,7,8]"] * 50_000) + b"]}"
    with _connect(served) as connection:
        connection.sendall(_head(f"Content-Length: {len(body)}") + body)
        _wait_until_empty(served, 8)


def _send_until_reset(connection: socket.socket, piece: bytes) -> int:
    """How many pieces can be sent."""
    for sent in range(2**14):
        try:
            connection.sendall(piece)
        except OSError:
            return sent
    return 2**14


def _wait_until_empty(served: Live, seconds: float = 3) -> None:
    began = time.monotonic()
    while served.server.guard.open and time.monotonic() - began < seconds:
        time.sleep(0.05)
    assert not served.server.guard.open


def test_what_cannot_be_a_certificate_is_said(tmp_path: Path, files: tuple[Path, Path]) -> None:
    certificate, key = files
    _, other = make_certificate(tmp_path, "other")
    _, locked = make_certificate(tmp_path, "locked", b"password")
    shown = tmp_path / "shown.key"
    shown.write_bytes(key.read_bytes())
    shown.chmod(0o644)
    damaged = tmp_path / "damaged.pem"
    damaged.write_text("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n")
    for one, two, words in (
        (tmp_path / "nowhere", key, "certificate: cannot read .*nowhere: No such file"),
        (certificate, tmp_path / "nowhere", "key: cannot read .*nowhere: No such file"),
        (certificate, other, "key: .*other.key is not the key of .*own.pem"),
        (certificate, locked, "key: .*locked.key is encrypted"),
        (certificate, shown, "key: other users can read"),
        (key, key, "certificate: .* holds no certificate"),
        (certificate, certificate, "key: "),
        (damaged, key, "certificate: .*cannot be used"),
    ):
        with pytest.raises(SettingsError, match=words):
            load_certificate(one, two)
