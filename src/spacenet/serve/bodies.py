"""Bodies of requests, received in bounded memory and time whatever clients send, or do not send.

Memory counts when bytes have arrived, not when they are announced, so a client that stalls holds only what it sent.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from starlette.requests import Request

from spacenet.serve.messages import RequestError

SMALL = 64 * 1024
"""Bytes of a body that need no place in the memory for large ones; the number of connections bounds their sum."""
LARGE_AT_ONCE = 8
"""The memory for large bodies suffices for so many of the largest that are allowed."""
WAIT_SECONDS = 10.0
"""How long a client may send nothing."""
MIN_RATE = 16 * 1024
"""Bytes per second that a client has to send on average, beyond `WAIT_SECONDS`."""
STALLED_SECONDS = 1.0
"""A body of which nothing arrived for so long has to make room when the memory is full."""
RETRY_SECONDS = 0.25


class Arrival:
    """A body that is being received."""

    def __init__(self, now: float) -> None:
        self.began = self.last = now
        self.taken = 0  # bytes of the memory for large bodies
        self.waits_for_memory = self.dismissed = False
        self.limit = asyncio.timeout(None)

    def dismiss(self) -> None:
        self.dismissed = True
        self.limit.reschedule(0.0)


class Bodies:
    """Receives bodies of at most `max_bytes` each."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes, self.total, self.used = max_bytes, LARGE_AT_ONCE * max_bytes, 0
        self._arriving: set[Arrival] = set()
        self._turn, self._freed = asyncio.Lock(), asyncio.Event()

    @asynccontextmanager
    async def receive(self, request: Request) -> AsyncIterator[bytes]:
        """A request's body. Its memory counts as taken until the end of the block."""
        claimed = request.headers.get("content-length", "")
        if claimed.isascii() and claimed.isdigit() and (len(claimed) > 18 or int(claimed) > self.max_bytes):
            raise self._too_large()
        arrival = Arrival(asyncio.get_running_loop().time())
        self._arriving.add(arrival)
        try:
            body = await self._collect(request, arrival)
            self._arriving.discard(arrival)
            yield body
        finally:
            self._arriving.discard(arrival)
            self.used -= arrival.taken
            self._freed.set()

    async def _collect(self, request: Request, arrival: Arrival) -> bytes:
        clock, body, patience = asyncio.get_running_loop().time, bytearray(), WAIT_SECONDS
        try:
            async with arrival.limit as limit:
                limit.reschedule(clock() + patience)
                asked = clock()
                async for chunk in request.stream():
                    limit.reschedule(None)  # what follows is not the client's time
                    patience = min(WAIT_SECONDS, patience - (clock() - asked) + len(chunk) / MIN_RATE)
                    if len(body) + len(chunk) > self.max_bytes:
                        raise self._too_large()
                    if len(body) + len(chunk) > SMALL:
                        await self._take(arrival, len(body) + len(chunk) - SMALL - arrival.taken)
                    body += chunk
                    asked = arrival.last = clock()
                    limit.reschedule(0.0 if arrival.dismissed else asked + patience)
                limit.reschedule(None)
        except TimeoutError as error:
            if arrival.dismissed:
                raise RequestError("too many large requests arrive at the same time; try again later", 503) from error
            reason = f"the body did not arrive in time: at least {MIN_RATE // 1024} KiB per second are needed"
            raise RequestError(reason, 408) from error
        return bytes(body)

    def _too_large(self) -> RequestError:
        return RequestError(f"the body is larger than {self.max_bytes / 1024**2:g} MiB; send less at a time", 413)

    async def _take(self, arrival: Arrival, size: int) -> None:
        """Take memory as soon as there is some."""
        arrival.waits_for_memory = True
        async with self._turn:  # large bodies take turns with everything else, however fast they are sent
            await asyncio.sleep(0)
        while self.used + size > self.total:
            self._make_room()
            self._freed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(RETRY_SECONDS):
                    await self._freed.wait()
        self.used += size
        arrival.taken += size
        arrival.waits_for_memory = False

    def _make_room(self) -> None:
        """Dismiss a body that stalls; or, if bodies wait only for each other's memory, the newest of them."""
        holders = [each for each in self._arriving if each.taken or each.waits_for_memory]
        if any(each.dismissed for each in holders):
            return  # its memory is about to be free
        now = asyncio.get_running_loop().time()
        stalled = [each for each in holders if not each.waits_for_memory and now - each.last > STALLED_SECONDS]
        if stalled:
            min(stalled, key=lambda each: each.last).dismiss()
        elif all(each.waits_for_memory for each in holders) and sum(each.taken for each in holders) == self.used:
            max(holders, key=lambda each: each.began).dismiss()
