"""Slow clients against the service, while others are measured: `python -m tests.campaigns.slow_clients`.

Two in five slow clients send half a header, a byte per second; two in five stop in the middle of a body; the others,
and one at full speed, send a body that never ends. All come back when they are cut off. The service, the slow clients
and the measured ones share the computer, so part of any slowdown is their need of processor time; the slow ones run at
a lower priority, because they would be elsewhere.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier, Event
from pathlib import Path

import httpx
import numpy as np
import psutil

from benchmarks.clients import Asked, ask

LARGE_ROWS = 100
LARGE_BYTES = 100_000
"""Of a request that the service does not count as small."""
PIECE = 16 * 1024
PIECES_PER_SECOND = 4  # of a body without end: 64 KiB per second each
MOST_GROWTH = 256 * 1024**2
MOST_LOG = 1024**2


Behaviour = Callable[[asyncio.StreamReader, asyncio.StreamWriter, str], Awaitable[None]]


@dataclass(frozen=True)
class Figures:
    """What the other clients saw, in milliseconds, and what it cost the service, in bytes."""

    requests: int
    failed: int
    p50_before: float
    p50_during: float
    p99_before: float
    p99_during: float
    large_p99_before: float
    large_p99_during: float
    memory_growth: int
    log_bytes: int
    connections: int

    def bounded(self) -> bool:
        return self.failed == 0 and self.memory_growth < MOST_GROWTH and self.log_bytes < MOST_LOG

    def doubled(self) -> bool:
        return self.p99_during > 2 * self.p99_before or self.large_p99_during > 2 * self.large_p99_before


def measure(slow: int, seconds: float, clients: int) -> Figures:
    """Ask for a while undisturbed and then, for `seconds`, beside so many slow clients."""
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as scratch, _server(Path(scratch)) as (process, address):
        over, attack, out = context.Event(), context.Event(), [context.Queue(), context.Queue()]
        ready = context.Barrier(4)
        every = [
            context.Process(target=ask_small, args=(address, clients, ready, over, out[0]), daemon=True),
            context.Process(target=ask_large, args=(address, ready, over, out[1]), daemon=True),
            context.Process(target=disturb, args=(address, slow, ready, attack, over), daemon=True),
        ]
        for each in every:
            each.start()
        ready.wait(timeout=60)
        time.sleep(1 + max(seconds / 4, 1))
        began, before = time.time(), process.memory_info().rss
        most = threading.Thread(target=_watch, args=(process, over, sizes := [before]), daemon=True)
        most.start()
        attack.set()
        time.sleep(seconds)
        sizes.append(process.memory_info().rss)
        connections = len(process.net_connections())
        over.set()
        asked: list[list[Asked]] = [each.get(timeout=60) for each in out]
        for each in every:
            each.join()
        log = (Path(scratch) / "log").stat().st_size
    (p50, p99), (_, large) = (_percentiles(each, began) for each in asked)
    failed = sum(each.status != 200 for several in asked for each in several)
    return Figures(sum(map(len, asked)), failed, *p50, *p99, *large, max(sizes) - before, log, connections)


def ask_small(address: str, clients: int, ready: Barrier, over: Event, out: "Queue[list[Asked]]") -> None:
    inputs = np.random.default_rng(0).normal(size=(16, 8)).tolist()
    bodies = [json.dumps({"inputs": [each]}).encode() for each in inputs]
    ready.wait()
    out.put(ask(f"{address}/predict", bodies, clients, over.is_set))


def ask_large(address: str, ready: Barrier, over: Event, out: "Queue[list[Asked]]") -> None:
    """One client with requests that are not small."""
    rows, asked = json.dumps({"inputs": [[0.5] * 8] * LARGE_ROWS}).encode(), []
    body = rows + b" " * (LARGE_BYTES - len(rows))
    ready.wait()
    with httpx.Client(timeout=60) as client:
        while not over.is_set():
            began, clock = time.time(), time.perf_counter()
            try:
                headers = {"content-type": "application/json"}
                code = client.post(f"{address}/predict", content=body, headers=headers).status_code
            except httpx.HTTPError:
                code = 0
            asked.append(Asked(began, time.perf_counter() - clock, 0, code, b""))
            time.sleep(0.02)
    out.put(asked)


# The slow clients


def disturb(address: str, count: int, ready: Barrier, attack: Event, over: Event) -> None:
    """All slow clients, in one process."""
    os.nice(10)
    ready.wait()
    attack.wait()
    asyncio.run(_disturb(address.removeprefix("http://"), count, over))


async def _disturb(host: str, count: int, over: Event) -> None:
    behaviours = [_half_header, _half_header, _stalled_body, _stalled_body, _endless_body]
    tasks = [asyncio.create_task(_again(behaviours[number % 5], host, number / 100)) for number in range(count)]
    tasks.append(asyncio.create_task(_again(_flood, host, 0)))
    while not over.is_set():
        await asyncio.sleep(0.1)
    for each in tasks:
        each.cancel()


async def _again(behaviour: Behaviour, host: str, offset: float) -> None:
    name, _, port = host.rpartition(":")
    await asyncio.sleep(offset)  # so many do not keep step with each other
    while True:
        with suppress(OSError):
            reader, writer = await asyncio.open_connection(name, int(port))
            try:
                await behaviour(reader, writer, host)
            finally:
                writer.close()
        await asyncio.sleep(0.5)


async def _half_header(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str) -> None:
    writer.write(f"POST /predict HTTP/1.1\r\nHost: {host}\r\nX-Long: ".encode())
    while not reader.at_eof():
        writer.write(b"a")
        await _pause(reader, 1)


async def _stalled_body(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str) -> None:
    writer.write(_head(host, "Content-Length: 70000") + b" " * 69_000)
    while not reader.at_eof():
        await _pause(reader, 60)


async def _endless_body(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str) -> None:
    writer.write(_head(host, "Transfer-Encoding: chunked"))
    while not reader.at_eof():
        writer.write(b"%x\r\n" % PIECE + b" " * PIECE + b"\r\n")
        await writer.drain()
        await _pause(reader, 1 / PIECES_PER_SECOND)


async def _flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str) -> None:
    writer.write(_head(host, "Transfer-Encoding: chunked"))
    while True:  # until the connection is reset
        writer.write(b"%x\r\n" % PIECE + b" " * PIECE + b"\r\n")
        await writer.drain()


def _head(host: str, length: str) -> bytes:
    return f"POST /predict HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n{length}\r\n\r\n".encode()


async def _pause(reader: asyncio.StreamReader, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await reader.read(65536)


# The service


@contextmanager
def _server(folder: Path) -> Iterator[tuple[psutil.Process, str]]:
    from spacenet.model.file import save_model  # not above: the other processes do without torch
    from tests.model.support import model

    save_model(folder / "model.safetensors", model())
    command = [sys.executable, "-m", "spacenet", "serve", str(folder / "model.safetensors"), "--port", "0"]
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        try:
            assert process.stdout is not None
            found = re.search(r"http://[\d.:]+", process.stdout.readline())
            assert found
            yield psutil.Process(process.pid), found[0]
        finally:
            process.kill()


def _watch(process: psutil.Process, over: Event, sizes: list[int]) -> None:
    with suppress(psutil.Error):
        while not over.wait(0.25):
            sizes.append(process.memory_info().rss)


Pair = tuple[float, float]


def _percentiles(asked: Sequence[Asked], began: float) -> tuple[Pair, Pair]:
    """The 50th and the 99th, in milliseconds, before an instant and after it; the first second does not count."""
    first = min(each.began for each in asked) + 1
    before = [1000 * each.seconds for each in asked if first < each.began and each.began + each.seconds < began]
    during = [1000 * each.seconds for each in asked if each.began >= began]
    (b50, b99), (d50, d99) = (np.percentile(part, (50, 99)).tolist() for part in (before, during))
    return (b50, d50), (b99, d99)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--slow", type=int, default=500, help="slow clients")
    parser.add_argument("--clients", type=int, default=8, help="other clients, which ask without pause")
    options = parser.parse_args(arguments)
    figures = measure(options.slow, options.seconds, options.clients)
    for name, value in asdict(figures).items():
        print(f"{name:20}{value:,.2f}" if isinstance(value, float) else f"{name:20}{value:,}")
    print("bounded:", figures.bounded(), "- p99 at most doubled:", not figures.doubled())
    return int(figures.doubled() or not figures.bounded())


if __name__ == "__main__":
    sys.exit(main())
