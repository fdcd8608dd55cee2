"""Slow clients against the service, while others are measured: `python -m tests.campaigns.slow_clients`.

A third of the slow clients send half a header, a byte per second; half of them stop in the middle of a body (JSON, a
tensor, an image of a form); the others, and one at full speed, send a body that never ends. With `--secure`, over TLS
with tokens, some stop in the handshake, and some have no token. All come back when they are cut off. The service, the
slow clients and the measured ones share the computer, so part of any slowdown is their need of processor time; the slow
ones run at a lower priority, because they would be elsewhere.
"""

import argparse
import json
import multiprocessing
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier, Event
from pathlib import Path

import numpy as np
import psutil

from tests.campaigns.slow_behaviors import Target, disturb

LARGE_ROWS = 100
LARGE_BYTES = 100_000
"""Of a request that the service does not count as small."""
MOST_GROWTH = 256 * 1024**2
MOST_LOG = 1024**2


@dataclass(frozen=True)
class Figures:
    """What the other clients saw, in milliseconds, and what it cost the service, in bytes; their own requests are not
    counted in the log."""

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


def measure(slow: int, seconds: float, clients: int, secure: bool = False) -> Figures:
    """Ask for a while undisturbed and then, for `seconds`, beside so many slow clients."""
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as scratch, _server(Path(scratch), secure) as (process, target):
        over, attack, out = context.Event(), context.Event(), [context.Queue(), context.Queue()]
        ready = context.Barrier(4)
        every = [
            context.Process(target=ask_small, args=(target, clients, ready, over, out[0]), daemon=True),
            context.Process(target=ask_large, args=(target, ready, over, out[1]), daemon=True),
            context.Process(target=disturb, args=(target, slow, ready, attack, over), daemon=True),
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
        with (Path(scratch) / "log").open("rb") as lines:
            log = sum(len(line) for line in lines if b" 200 " not in line)
    (p50, p99), (_, large) = (_percentiles(each, began) for each in asked)
    failed = sum(each.status != 200 for several in asked for each in several)
    return Figures(sum(map(len, asked)), failed, *p50, *p99, *large, max(sizes) - before, log, connections)


# The clients that are measured


@dataclass(frozen=True)
class Asked:
    """One request and what came of it."""

    began: float
    """Time of day in seconds, which all processes share."""
    seconds: float
    status: int
    """0: no answer at all."""


def ask_small(target: Target, clients: int, ready: Barrier, over: Event, out: "Queue[list[Asked]]") -> None:
    """So many clients at the same time, at the service's own addresses and those of the Open Inference Protocol."""
    sample = [0.5] * 8
    tensor = {"name": "input", "shape": [1, 8], "datatype": "FP32", "data": sample}
    bodies = {"/predict": {"inputs": [sample]}, "/v2/models/model/infer": {"inputs": [tensor]}}
    requests = [(path, json.dumps(body).encode()) for path, body in bodies.items()]
    ready.wait()
    with ThreadPoolExecutor(clients) as pool:
        each = pool.map(lambda first: _ask_on(target, requests[first % 2 :], 0.0, over), range(clients))
        out.put([asked for several in each for asked in several])


def ask_large(target: Target, ready: Barrier, over: Event, out: "Queue[list[Asked]]") -> None:
    """One client with requests that are not small."""
    rows = json.dumps({"inputs": [[0.5] * 8] * LARGE_ROWS}).encode()
    ready.wait()
    out.put(_ask_on(target, [("/predict", rows + b" " * (LARGE_BYTES - len(rows)))], 0.02, over))


def _ask_on(target: Target, requests: Sequence[tuple[str, bytes]], pause: float, over: Event) -> list[Asked]:
    """One client: one connection, one request after the other. Of the standard library: richer ones cost more."""
    name, _, port = target.host.rpartition(":")
    context = target.context()
    connection = HTTPConnection(name, int(port), timeout=60)
    if context:
        connection = HTTPSConnection(name, int(port), timeout=60, context=context)
    headers = {"content-type": "application/json"}
    headers |= {"authorization": f"Bearer {target.token}"} if target.token else {}
    asked: list[Asked] = []
    while not over.is_set():
        began, clock = time.time(), time.perf_counter()
        try:
            connection.request("POST", *requests[len(asked) % len(requests)], headers)
            response = connection.getresponse()
            status, _ = response.status, response.read()
        except (OSError, HTTPException):
            status = 0
            connection.close()
        asked.append(Asked(began, time.perf_counter() - clock, status))
        time.sleep(pause)
    connection.close()
    return asked


# The service


@contextmanager
def _server(folder: Path, secure: bool) -> Iterator[tuple[psutil.Process, Target]]:
    from spacenet.model.file import save_model  # not above: the other processes do without torch
    from tests.model.support import model

    save_model(folder / "model.safetensors", model())
    command = [sys.executable, "-m", "spacenet", "serve", str(folder / "model.safetensors"), "--port", "0"]
    extra, certificate, token = _secure(folder) if secure else ([], None, None)
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen([*command, *extra], stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        try:
            assert process.stdout is not None
            found = re.search(r"https?://([\d.:]+)", process.stdout.readline())
            assert found
            yield psutil.Process(process.pid), Target(found[1], certificate, token)
        finally:
            process.kill()


def _secure(folder: Path) -> tuple[list[str], str, str]:
    """The options of a service with TLS and a token, its certificate, and the token."""
    from tests.serve.certificates import make_certificate
    from tests.serve.tokens import READING, token_file

    certificate, key = make_certificate(folder)
    tokens = token_file(folder / "tokens", READING)
    options = ["--certificate", certificate, "--key", key, "--token-file", tokens, "--log-requests"]
    return list(map(str, options)), str(certificate), READING


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
    parser.add_argument("--secure", action="store_true", help="over TLS, with a token, and with a log of requests")
    parser.add_argument("--clients", type=int, default=8, help="other clients, which ask without pause")
    options = parser.parse_args(arguments)
    figures = measure(options.slow, options.seconds, options.clients, options.secure)
    for name, value in asdict(figures).items():
        print(f"{name:20}{value:,.2f}" if isinstance(value, float) else f"{name:20}{value:,}")
    print("bounded:", figures.bounded(), "- p99 at most doubled:", not figures.doubled())
    return int(figures.doubled() or not figures.bounded())


if __name__ == "__main__":
    sys.exit(main())
