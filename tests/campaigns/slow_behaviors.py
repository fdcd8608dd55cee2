"""What slow clients do: half a header or handshake, bodies that stall or never end, and all that again."""

import asyncio
import os
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.synchronize import Barrier, Event

PIECE = 16 * 1024
PIECES_PER_SECOND = 4  # of a body without end: 64 KiB per second each
PART = b'--part\r\nContent-Disposition: form-data; name="image"; filename="a.png"\r\nContent-Type: image/png\r\n\r\n'


@dataclass(frozen=True)
class Target:
    """The service: its name with its port and, over TLS, its certificate and a token."""

    host: str
    certificate: str | None = None
    token: str | None = None

    def context(self) -> ssl.SSLContext | None:
        return ssl.create_default_context(cafile=self.certificate) if self.certificate else None


@dataclass(frozen=True)
class Slow:
    """A slow client's connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    target: Target

    def head(self, length: str, path: str = "/predict", kind: str = "application/json") -> bytes:
        lines = [f"POST {path} HTTP/1.1", f"Host: {self.target.host}", f"Content-Type: {kind}", length]
        lines += [f"Authorization: Bearer {self.target.token}"] if self.target.token else []
        return "".join(f"{line}\r\n" for line in [*lines, ""]).encode()

    async def send(self, content: bytes) -> None:
        self.writer.write(content)
        await self.writer.drain()
        await asyncio.sleep(0)  # over TLS a connection that is lost says so only then

    async def wait(self, seconds: float) -> None:
        """Wait, or until the service says something."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.reader.read(65536)

    async def stall(self, content: bytes) -> None:
        """Send this and then nothing."""
        self.writer.write(content)
        while not self.reader.at_eof():
            await self.wait(60)


Behavior = Callable[[Slow], Awaitable[None]]


async def half_header(it: Slow) -> None:
    """A byte per second."""
    it.writer.write(f"POST /predict HTTP/1.1\r\nHost: {it.target.host}\r\nX-Long: ".encode())
    while not it.reader.at_eof():
        it.writer.write(b"a")
        await it.wait(1)


async def stalled_body(it: Slow) -> None:
    await it.stall(it.head("Content-Length: 70000") + b" " * 69_000)


async def stalled_tensor(it: Slow) -> None:
    sizes = "Content-Length: 70000\r\nInference-Header-Content-Length: 100"
    await it.stall(it.head(sizes, "/v2/models/model/infer", "application/octet-stream") + b" " * 69_000)


async def stalled_part(it: Slow) -> None:
    await it.stall(it.head("Content-Length: 70000", kind="multipart/form-data; boundary=part") + PART + b"\0" * 68_000)


async def half_handshake(it: Slow) -> None:
    """Over TLS: the beginning of a record that never comes."""
    await it.stall(b"\x16\x03\x01\x02\x00\x01")


async def endless_body(it: Slow) -> None:
    await it.send(it.head("Transfer-Encoding: chunked"))
    while not it.reader.at_eof():
        await it.send(b"%x\r\n" % PIECE + b" " * PIECE + b"\r\n")
        await it.wait(1 / PIECES_PER_SECOND)


async def endless_body_without_token(it: Slow) -> None:
    await endless_body(replace(it, target=replace(it.target, token=None)))


async def flood(it: Slow) -> None:
    """A body at full speed, until the connection is reset."""
    await it.send(it.head("Transfer-Encoding: chunked"))
    while True:
        await it.send(b"%x\r\n" % PIECE + b" " * PIECE + b"\r\n")


PLAIN = (half_header, half_header, stalled_body, stalled_tensor, stalled_part, endless_body)
SECURE = (*PLAIN, half_handshake, half_handshake, endless_body_without_token)


def disturb(target: Target, count: int, ready: Barrier, attack: Event, over: Event) -> None:
    """All slow clients, in one process."""
    os.nice(10)
    ready.wait()
    attack.wait()
    asyncio.run(_disturb(target, count, over))


async def _disturb(target: Target, count: int, over: Event) -> None:
    behaviors = SECURE if target.certificate else PLAIN
    several = [(behaviors[number % len(behaviors)], number / 100) for number in range(count)]
    tasks = [asyncio.create_task(_again(each, target, offset)) for each, offset in [*several, (flood, 0.0)]]
    while not over.is_set():
        await asyncio.sleep(0.1)
    for each in tasks:
        each.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _again(behavior: Behavior, target: Target, offset: float) -> None:
    name, _, port = target.host.rpartition(":")
    context = None if behavior is half_handshake else target.context()
    await asyncio.sleep(offset)  # so many do not keep step with each other
    while True:
        with suppress(OSError, asyncio.IncompleteReadError):
            reader, writer = await asyncio.open_connection(name, int(port), ssl=context)
            try:
                await behavior(Slow(reader, writer, target))
            finally:
                writer.transport.abort()
        await asyncio.sleep(0.5)
