"""TLS: the certificate, and connections that begin with a handshake.

The handshake is under guard like all that follows: uvicorn would hear of a connection only when it is over, and those
that never finish it would not be counted.
"""

import asyncio
import ssl
from asyncio import sslproto
from pathlib import Path
from typing import Any

from spacenet.errors import SettingsError
from spacenet.serve.bodies import WAIT_SECONDS
from spacenet.serve.connections import LINGER_SECONDS, Connection, Guard
from spacenet.serve.secrets import read_secret

READ_BYTES = 64 * 1024
"""What asyncio reads at a time from a connection over TLS; it keeps a buffer of that size, and OpenSSL another."""


def load_certificate(certificate: Path, key: Path) -> ssl.SSLContext:
    """A context for a server with this certificate (and those that vouch for it) and its private key."""
    _check_kind(_read(certificate), b"CERTIFICATE-----", certificate, "certificate")
    _check_kind(read_secret(key, "key"), b"PRIVATE KEY-----", key, "key")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])

    def refuse_password() -> str:
        raise SettingsError(f"{key} is encrypted; give a key without a password", setting="key")

    try:
        context.load_cert_chain(certificate, key, refuse_password)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise SettingsError(f"{key} is not the key of {certificate}", setting="key") from error
        problem = error.reason or str(error)
        raise SettingsError(f"{certificate} and {key} cannot be used ({problem})", setting="certificate") from error
    return context


def limit_buffers() -> None:
    """Let connections over TLS read `READ_BYTES` at a time. Asyncio's 256 KiB are a megabyte for each slow client."""
    if hasattr(sslproto.SSLProtocol, "max_size"):
        sslproto.SSLProtocol.max_size = READ_BYTES


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise SettingsError(f"cannot read {path}: {error.strerror or error}", setting="certificate") from error


def _check_kind(content: bytes, mark: bytes, path: Path, setting: str) -> None:
    if mark not in content:
        what = "certificate" if setting == "certificate" else "private key"
        raise SettingsError(f"{path} holds no {what} in the PEM format", setting=setting)


class SecureConnection(Connection):
    """A connection that begins with a handshake, under guard from its first byte."""

    def __init__(self, guard: Guard, context: ssl.SSLContext, *args: Any, **options: Any) -> None:
        super().__init__(guard, *args, **options)
        self._context, self._secured, self._lost = context, False, False
        self._early: list[bytes] = []  # what came with the end of the handshake

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.real = self._raw = transport
        self.guard.enter(self)
        self._handshake = self.loop.create_task(self._shake_hands())

    async def _shake_hands(self) -> None:
        seconds: dict[str, Any] = {"ssl_handshake_timeout": WAIT_SECONDS, "ssl_shutdown_timeout": LINGER_SECONDS}
        try:
            secure = await self.loop.start_tls(self._raw, self, self._context, server_side=True, **seconds)
        except OSError:  # also what is no TLS, and what takes too long
            secure = None
        if secure is None or self._lost:
            self.guard.leave(self)
            self._raw.abort()
            return
        self._secured = True
        super().connection_made(secure)
        for data in self._early:
            self.data_received(data)
        self._early.clear()

    def data_received(self, data: bytes) -> None:
        if self._secured:
            super().data_received(data)
        else:
            self._early.append(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = True
        if self._secured:
            super().connection_lost(exc)
        else:
            self.guard.leave(self)

    def unsent(self) -> int:
        raw = 0 if self._raw is self.real else self._raw.get_write_buffer_size()
        return super().unsent() + raw
