"""How many requests may be in work at the same time, and how long."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from spacenet.serve.messages import RequestError


@dataclass(frozen=True)
class Limits:
    """What the work for requests may take."""

    max_requests: int = 256
    """In work at the same time, those that wait for a thread included."""
    timeout: float = 60.0
    """Seconds."""


class Workload:
    """Counts requests in work, and gives each its time.

    A thread cannot be interrupted. When the time is over, the client is answered; what has not begun is dropped, and
    a thread that is at work goes on until it is done, so at most as many as there are threads.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits, self.in_work = limits, 0

    def check_room(self) -> None:
        if self.in_work >= self.limits.max_requests:
            reason = f"{self.limits.max_requests} requests are in work; try again later"
            raise RequestError(reason, 503, retry_after=1)

    @asynccontextmanager
    async def admit(self) -> AsyncIterator[None]:
        """One request's work. Raises `RequestError` (503, 504) where the limits are reached."""
        self.check_room()
        self.in_work += 1
        time = asyncio.timeout(self.limits.timeout)
        try:
            async with time:
                yield
        except TimeoutError as error:
            if not time.expired():
                raise
            reason = f"this took longer than {self.limits.timeout:g} s; send less at a time, or try again later"
            raise RequestError(reason, 504) from error
        finally:
            self.in_work -= 1
