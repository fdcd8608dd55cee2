"""Work for requests: so much of it at a time, and clients wait for it so long."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, TypeVar

from spacenet.serve.messages import RequestError

Result = TypeVar("Result")


@dataclass(frozen=True)
class Limits:
    """What the work for requests may take."""

    max_requests: int = 256
    """In work at the same time, those that wait for a thread included."""
    timeout: float = 60.0
    """Seconds."""


class Work:
    """Runs functions in threads.

    A thread cannot be interrupted. When the time is over, work that has not begun is dropped, and other work goes on
    without its client; it counts as in work until it ends.
    """

    def __init__(self, pool: Executor, limits: Limits) -> None:
        self.pool, self.limits, self.in_work = pool, limits, 0

    async def run(self, function: Callable[..., Result], *args: Any) -> Result:
        """The function's result. Raises `RequestError` (503, 504) where the limits are reached."""
        self.check_room()
        begun = self.pool.submit(function, *args)
        return await self.wait(asyncio.wrap_future(begun), begun.cancel)

    def check_room(self) -> None:
        """Raise `RequestError` (503) if so many requests are in work as may be."""
        if self.in_work >= self.limits.max_requests:
            reason = f"{self.limits.max_requests} requests are in work; try again later"
            raise RequestError(reason, 503, retry_after=1)

    async def wait(self, result: "asyncio.Future[Result]", drop: Callable[[], object]) -> Result:
        """The result of work, which counts as in work until then. If it takes too long, `drop` is called and
        `RequestError` (504) raised."""
        self.in_work += 1
        result.add_done_callback(self._end)
        await asyncio.wait({result}, timeout=self.limits.timeout)
        if result.done():
            return result.result()
        drop()
        reason = f"this took longer than {self.limits.timeout:g} s; send less at a time, or try again later"
        raise RequestError(reason, 504)

    def _end(self, result: asyncio.Future[Any]) -> None:
        self.in_work -= 1
        if not result.cancelled():
            result.exception()  # noted as seen: its client may have been answered already
