"""Several requests in one computation.

A network takes hardly longer for ten samples than for one. So requests that arrive at the same time, or while others
are computed, are computed together. One that comes alone does not wait for more.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from spacenet.data.preprocessing import Array

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
    work: Callable[[Array], Any]
    x: Array
    found: "asyncio.Future[Any]"


class Batcher:
    """Collects samples and computes them in batches, on threads or, where that is quick, at once."""

    def __init__(self, pool: Executor, at_once: int) -> None:
        """`at_once`: so many batches are computed at the same time; others wait, and grow meanwhile."""
        self._pool, self._at_once = pool, at_once
        self._waiting: deque[Waiting] = deque()
        self._quick: deque[Waiting] = deque()
        self._running, self._scheduled = 0, False

    async def compute(
        self, key: Hashable, work: Callable[[Array], Found], x: Array, *, quick: bool = False
    ) -> Found:
        """`work(x)`, in one call with the samples of other requests that have the same key.

        If a batch fails, each of its requests is computed alone, so that only those fail that have to. `quick`: the
        work takes less time than handing it to a thread.
        """
        loop = asyncio.get_running_loop()
        waiting = Waiting((key, x.shape[1:], x.dtype), work, x, loop.create_future())
        (self._quick if quick else self._waiting).append(waiting)
        if not self._scheduled:  # not yet: requests that arrived together come first, all of them
            self._scheduled = True
            loop.call_soon(self._start)
        found: Found = await waiting.found
        return found

    def _start(self) -> None:
        """Compute what waits, as far as threads are free."""
        self._scheduled = False
        while self._quick:
            batch = _take(self._quick)
            _deliver(batch, compute_each(batch))
        while self._waiting and self._running < self._at_once:
            batch = _take(self._waiting)
            try:
                future = asyncio.get_running_loop().run_in_executor(self._pool, compute_each, batch)
            except RuntimeError as error:  # the threads have ended, and so does the service
                _deliver(batch, [error] * len(batch))
                continue
            self._running += 1
            future.add_done_callback(lambda done, batch=batch: self._end(batch, done))  # type: ignore[misc]

    def _end(self, batch: Sequence[Waiting], done: "asyncio.Future[list[Any]]") -> None:
        self._running -= 1
        if done.cancelled():
            _deliver(batch, [RuntimeError("the service is being stopped")] * len(batch))
        else:
            error = done.exception()
            _deliver(batch, [error] * len(batch) if error else done.result())
        self._start()


def _take(waiting: deque[Waiting]) -> list[Waiting]:
    """Remove the request that has waited longest, and all that can be computed with it."""
    first = waiting.popleft()
    batch, samples, size = [first], len(first.x), first.x.nbytes
    for each in list(waiting):
        fits = samples + len(each.x) <= MAX_SAMPLES and size + each.x.nbytes <= MAX_BYTES
        if fits and each.key == first.key:
            batch.append(each)
            waiting.remove(each)
            samples, size = samples + len(each.x), size + each.x.nbytes
    return batch


def compute_each(batch: Sequence[Waiting]) -> list[Any]:
    """The results of each request, or the exception that its own samples raise."""
    if len(batch) == 1:
        try:
            return [batch[0].work(batch[0].x)]
        except Exception as error:
            return [error]
    try:
        found = batch[0].work(np.concatenate([each.x for each in batch]))
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
