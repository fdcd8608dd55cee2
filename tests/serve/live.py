"""A service with real connections, in a thread of the test."""

import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spacenet.cli.serve import open_listener
from spacenet.serve.metrics import show_connections
from spacenet.serve.server import Server
from tests.serve.support import HOST, Service, service

JSON_HEAD = f"POST /predict HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\n"
BODY = b'{"inputs": [[1, 2, 3, 4, 5, 6, 7, 8]]}'


class Live:
    """The address of a running service, and its parts."""

    def __init__(self, it: Service, server: Server, address: tuple[str, int]) -> None:
        self.it, self.server, self.address = it, server, address

    def connect(self, sent: bytes | str = b"") -> socket.socket:
        connection = socket.create_connection(self.address, timeout=20)
        connection.sendall(sent.encode() if isinstance(sent, str) else sent)
        return connection

    def ask(self, body: bytes = BODY) -> tuple[int, float]:
        """The status of a good request, and the seconds that it took."""
        began = time.monotonic()
        with self.connect(f"{JSON_HEAD}Content-Length: {len(body)}\r\n\r\n".encode() + body) as connection:
            return status_of(connection.recv(65536)), time.monotonic() - began


def status_of(response: bytes) -> int:
    return int(response.split(b" ", 2)[1]) if response else 0


def read_all(connection: socket.socket) -> bytes:
    """Everything until the service ends the connection."""
    content = b""
    try:
        while part := connection.recv(65536):
            content += part
    except ConnectionError:
        pass
    return content


@contextmanager
def live(
    folder: Path, *, max_bytes: int = 2**20, certificate: ssl.SSLContext | None = None, **rest: Any
) -> Iterator[Live]:
    """A service; `rest` are further arguments of `service`."""
    with service(folder, max_bytes=max_bytes, **rest) as it, open_listener("127.0.0.1", 0) as listener:
        address = listener.getsockname()[:2]
        server = Server(it.app, certificate)
        show_connections(it.app, server.guard)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield Live(it, server, address)
        finally:
            server.should_exit = True
            thread.join()
