"""Several requests in one computation.

A network takes hardly longer for ten samples than for one. So requests that arrive at the same time, or while others
are computed, are computed together. One that comes alone does not wait for more.
"""

import asyncio
import os
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy as np

from spacenet.data.preprocessing import Array

AT_ONCE = min(4, os.cpu_count() or 1)
"""Batches that are computed on threads at the same time; other requests wait, and make the next batch larger."""
PATIENCE = 3
"""Turns of the event loop, a few microseconds each, that may bring no more requests before a batch begins."""
MAX_SAMPLES = 256
"""Samples in a batch: beyond that, twice as many take twice as long."""
MAX_BYTES = 4 * 1024**2
"""Bytes of the samples in a batch."""


class Rows(Protocol):
    """Results: one row for each sample."""

    def __getitem__(self, rows: slice, /) -> Any: ...


Found = TypeVar("Found", bound=Rows)


@dataclass(frozen=True, eq=False)
class Waiting:
    """The samples of one request, and where its results go."""

    key: Hashable
    function: Callable[[Array], Any]
    x: Array
    found: "asyncio.Future[Any]"


class Batcher:
    """Collects samples and computes them in batches, on threads or, where that is quick, at once."""

    def __init__(self, pool: Executor) -> None:
        self._pool = pool
        self._waiting: deque[Waiting] = deque()
        self._quick: deque[Waiting] = deque()
        self._running: set[Future[list[Any]]] = set()
        self._scheduled = False

    async def compute(self, key: Hashable, function: Callable[[Array], Found], x: Array, *, quick: bool) -> Found:
        """`function(x)`, in one call with the samples of other requests that have the same key.

        If a batch fails, each of its requests is computed alone, so that only those fail that have to. `quick`: it
        takes less time than handing it to a thread.
        """
        loop = asyncio.get_running_loop()
        waiting = Waiting((key, x.shape[1:], x.dtype), function, x, loop.create_future())
        if not self._scheduled:
            self._scheduled = True
            loop.call_soon(self._look, 0, PATIENCE)
        (self._quick if quick else self._waiting).append(waiting)
        found: Found = await waiting.found
        return found

    def _look(self, seen: int, patience: int) -> None:
        """Begin when no more requests come: between two looks the event loop reads those that have arrived."""
        found = len(self._quick) + len(self._waiting)
        patience = PATIENCE if found > seen else patience - 1
        if patience and found < MAX_SAMPLES:
            asyncio.get_running_loop().call_soon(self._look, found, patience)
        else:
            self._scheduled = False
            self._start()

    def _start(self) -> None:
        """Compute what is quick, and begin with the rest as far as threads are free."""
        while batch := _take(self._quick):
            _deliver(batch, compute_each(batch))
        self._running = {each for each in self._running if not each.done()}
        while len(self._running) < AT_ONCE and (batch := _take(self._waiting)):
            begun = self._pool.submit(compute_each, batch)
            self._running.add(begun)
            asyncio.wrap_future(begun).add_done_callback(partial(self._end, batch))

    def _end(self, batch: Sequence[Waiting], computed: "asyncio.Future[list[Any]]") -> None:
        _deliver(batch, computed.result())
        self._start()


def _take(waiting: deque[Waiting]) -> list[Waiting]:
    """Remove the request that has waited longest, and all that can be computed with it; those given up are dropped."""
    batch: list[Waiting] = []
    samples = size = 0
    for each in list(waiting):
        if each.found.done():
            waiting.remove(each)
        elif not batch or each.key == batch[0].key:
            samples, size = samples + len(each.x), size + each.x.nbytes
            if batch and (samples > MAX_SAMPLES or size > MAX_BYTES):
                break
            waiting.remove(each)
            batch.append(each)
    return batch


def compute_each(batch: Sequence[Waiting]) -> list[Any]:
    """The results of each request, or the exception that its own samples raise."""
    if len(batch) == 1:
        try:
            return [batch[0].function(batch[0].x)]
        except Exception as error:
            return [error]
    try:
        found = batch[0].function(np.concatenate([each.x for each in batch]))
    except Exception:
        return [result for each in batch for result in compute_each([each])]
    return list(_split(found, batch))


def _split(found: Rows, batch: Sequence[Waiting]) -> Iterator[Any]:
    first = 0
    for each in batch:
        yield found[first : first + len(each.x)]
        first += len(each.x)


def _deliver(batch: Sequence[Waiting], results: Sequence[Any]) -> None:
    for each, result in zip(batch, results, strict=True):
        if each.found.done():  # the request was given up
            continue
        if isinstance(result, BaseException):
            each.found.set_exception(result)
        else:
            each.found.set_result(result)
