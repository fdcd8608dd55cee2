"""The clients of the service's benchmark: a process of its own that asks and asks, and notes every answer.

Threads and the standard library's client: a richer one takes many times as long, on processors that the service
needs too.
"""

import json
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event
from typing import Any
from urllib.parse import urlsplit

SECONDS = 60
"""To wait for an answer."""


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


def ask_on(address: str, inputs: Sequence[Any], clients: int, over: Event, out: "Queue[list[Asked]]") -> None:
    """Let so many clients ask at the same time, each as soon as it has its answer, until it is over."""
    bodies = [json.dumps({"inputs": [each]}).encode() for each in inputs]
    with ThreadPoolExecutor(clients) as pool:
        each = pool.map(lambda first: _ask_on(address, bodies, first, over), range(clients))
        out.put([asked for several in each for asked in several])


def _ask_on(address: str, bodies: Sequence[bytes], first: int, over: Event) -> list[Asked]:
    """One client: one connection, one request after the other."""
    where = urlsplit(address)
    connection = HTTPConnection(where.hostname or "", where.port, timeout=SECONDS)
    asked: list[Asked] = []
    while not over.is_set():
        number = (first + len(asked)) % len(bodies)
        began, clock = time.time(), time.perf_counter()
        try:
            connection.request("POST", "/predict", bodies[number], {"content-type": "application/json"})
            response = connection.getresponse()
            status, content = response.status, response.read()
            seconds, answer = time.perf_counter() - clock, json.loads(content)
        except (OSError, HTTPException, ValueError) as error:
            seconds, status, answer = time.perf_counter() - clock, 0, repr(error)
            connection.close()
        asked.append(Asked(began, seconds, number, status, answer))
    connection.close()
    return asked
